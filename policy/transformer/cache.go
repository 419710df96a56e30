package transformer

import "fmt"

// minCacheCapacity is the number of positions that a cache makes room for at first.
const minCacheCapacity = 64

// Cache holds the keys and values of a sequence's first tokens, so that the next token costs one row. It grows with
// the sequence. One goroutine at a time uses it. Which way its rows were computed, alone, in a batch, or copied from
// another cache, leaves no trace in their bits.
type Cache struct {
	config   Config
	length   int
	capacity int
	// layers[l] is layer l's keys [KVHeads][HeadDim][capacity], transposed so that a query meets all of them in one
	// vector-matrix product, followed by its values [KVHeads][capacity][HeadDim].
	layers [][]float32
}

// NewCache returns an empty cache for sequences of m.
func (m *Model) NewCache() *Cache { return &Cache{config: m.config} }

// Len is the number of tokens in the cache.
func (c *Cache) Len() int { return c.length }

// Bytes is the memory that the cache holds on to.
func (c *Cache) Bytes() int { return c.config.Layers * 2 * c.config.kvWidth() * c.capacity * 4 }

// CopyPrefix makes c hold the first n tokens of from, which may be c, and nothing else. It panics if from holds fewer,
// or belongs to a model of another shape.
func (c *Cache) CopyPrefix(from *Cache, n int) {
	if n < 0 || n > from.length || c.config != from.config {
		panic(fmt.Sprintf("transformer: CopyPrefix: %d of %d tokens", n, from.length))
	}
	if c == from || n == 0 {
		c.length = n
		return
	}
	c.length = 0
	c.reserve(n)
	for l := range c.layers {
		c.copyLayer(c.layers[l], c.capacity, from.layers[l], from.capacity, n)
	}
	c.length = n
}

// copyLayer copies the first n positions of one layer between caches of different capacity.
func (c *Cache) copyLayer(to []float32, toCapacity int, from []float32, fromCapacity, n int) {
	width := c.config.kvWidth()
	for j := range width {
		copy(to[j*toCapacity:][:n], from[j*fromCapacity:])
	}
	to, from = to[width*toCapacity:], from[width*fromCapacity:]
	h := c.config.HeadDim
	for g := range c.config.KVHeads {
		copy(to[g*toCapacity*h:][:n*h], from[g*fromCapacity*h:])
	}
}

// reserve makes room for n tokens, doubling so that a long sequence moves its rows only a few times.
func (c *Cache) reserve(n int) {
	if n <= c.capacity {
		return
	}
	if n > c.config.Context {
		panic(fmt.Sprintf("transformer: %d tokens in a context of %d", n, c.config.Context))
	}
	capacity := min(c.config.Context, max(n, 2*c.capacity, minCacheCapacity))
	layers := make([][]float32, c.config.Layers)
	for l := range layers {
		layers[l] = make([]float32, 2*c.config.kvWidth()*capacity)
		if c.length > 0 {
			c.copyLayer(layers[l], capacity, c.layers[l], c.capacity, c.length)
		}
	}
	c.layers, c.capacity = layers, capacity
}

// keys is layer l's keys of head g, [HeadDim][capacity].
func (c *Cache) keys(l, g int) []float32 {
	n := c.config.HeadDim * c.capacity
	return c.layers[l][g*n : (g+1)*n]
}

// values is layer l's values of head g, [capacity][HeadDim].
func (c *Cache) values(l, g int) []float32 {
	n := c.config.HeadDim * c.capacity
	g += c.config.KVHeads
	return c.layers[l][g*n : (g+1)*n]
}

// store writes the key and value of head g for one position of layer l.
func (c *Cache) store(l, g, position int, key, value []float32) {
	keys, at := c.keys(l, g), position
	for _, v := range key {
		keys[at] = v
		at += c.capacity
	}
	copy(c.values(l, g)[position*len(value):], value)
}
