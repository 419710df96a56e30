package kernel

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

func TestUse(t *testing.T) {
	was := Active()
	defer func() { mustUse(t, was) }()
	names := Available()
	if names[0] != "portable" {
		t.Errorf("the first path is %q, want portable", names[0])
	}
	for _, name := range names {
		mustUse(t, name)
		if Active() != name {
			t.Errorf("Active() = %q after Use(%q)", Active(), name)
		}
	}
	for _, name := range []string{"", "avx1024", "Portable"} {
		before := Active()
		if err := Use(name); err == nil || !strings.Contains(err.Error(), "portable") {
			t.Errorf("Use(%q) = %v, want an error that lists the paths", name, err)
		}
		if Active() != before {
			t.Errorf("a refused Use(%q) changed the path", name)
		}
	}
}

// TestEnvironmentChoosesThePath covers what the value of LIGHTSWARM_KERNEL does at start.
func TestEnvironmentChoosesThePath(t *testing.T) {
	names := Available()
	if p, err := choose(""); err != nil || pathNames[p] != names[len(names)-1] {
		t.Errorf("without a wish: %v, %v, want the fastest path", p, err)
	}
	for _, name := range names {
		if p, err := choose(name); err != nil || pathNames[p] != name {
			t.Errorf("%q gives path %v, %v", name, p, err)
		}
	}
	if _, err := choose("fastest"); err == nil || !strings.Contains(err.Error(), `no kernel path "fastest" here`) {
		t.Errorf("an unknown path gives %v", err)
	}
}

func TestAllocAligns(t *testing.T) {
	for n := range 200 {
		s := Alloc(n)
		if len(s) != n || cap(s) != n {
			t.Fatalf("Alloc(%d) has length %d and capacity %d", n, len(s), cap(s))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(s))); at%64 != 0 {
			t.Fatalf("Alloc(%d) starts at %#x", n, at)
		}
	}
}

// TestPackedKeepsItsPath packs on one path and multiplies while another one is active.
func TestPackedKeepsItsPath(t *testing.T) {
	was := Active()
	defer func() { mustUse(t, was) }()
	const m, n, k = 3, 50, 20
	r := rand.New(rand.NewPCG(3, 4))
	a, b, want := draw(r, m*k, false), draw(r, k*n, false), make([]float32, m*n)
	reference(false, false, m, n, k, a, k, b, n, want, n, false)
	for _, packedOn := range Available() {
		var packed Packed
		mustUse(t, packedOn)
		packed.Pack(false, n, k, b, n)
		for _, usedOn := range Available() {
			mustUse(t, usedOn)
			got := make([]float32, m*n)
			MatMul(false, m, n, k, a, k, &packed, got, n, false)
			if i := differ(got, want); i >= 0 {
				t.Errorf("packed on %s, used on %s: element %d differs", packedOn, usedOn, i)
			}
		}
	}
}

// TestPackedReusesMemory packs smaller and larger matrices into one Packed.
func TestPackedReusesMemory(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		var packed Packed
		r := rand.New(rand.NewPCG(5, 6))
		for _, shape := range [][2]int{{70, 30}, {3, 2}, {70, 30}, {0, 5}, {5, 0}, {90, 40}} {
			n, k := shape[0], shape[1]
			a, b := draw(r, k, false), draw(r, n*k, false)
			packed.Pack(true, n, k, b, k)
			want, got := make([]float32, n), make([]float32, n)
			reference(false, true, 1, n, k, a, k, b, k, want, n, false)
			MatMul(false, 1, n, k, a, k, &packed, got, n, false)
			if i := differ(got, want); i >= 0 {
				t.Fatalf("%d x %d: element %d differs", k, n, i)
			}
		}
		w := make([]float32, 70*30)
		for name, pack := range map[string]func(*Packed, bool, int, int, []float32, int){"Pack": (*Packed).Pack, "PackBF16": (*Packed).PackBF16} {
			pack(&packed, true, 70, 30, w, 30)
			if n := testing.AllocsPerRun(10, func() { pack(&packed, true, 70, 30, w, 30) }); n > 0 {
				t.Errorf("%s again allocates %v times", name, n)
			}
		}
	})
}

func TestWrongLengthsPanic(t *testing.T) {
	s := func(n int) []float32 { return make([]float32, n) }
	var packed Packed
	packed.Pack(false, 4, 3, s(12), 4)
	for name, f := range map[string]func(){
		"Pack short":             func() { new(Packed).Pack(false, 4, 3, s(11), 4) },
		"Pack ld":                func() { new(Packed).Pack(true, 4, 3, s(12), 2) },
		"Pack negative":          func() { new(Packed).Pack(true, -1, 3, nil, 3) },
		"PackBF16 short":         func() { new(Packed).PackBF16(false, 4, 3, s(11), 4) },
		"PackBF16 rounding":      func() { new(Packed).PackBF16(false, 1, 1, []float32{1.001}, 1) },
		"MatMul a":               func() { MatMul(false, 2, 4, 3, s(5), 3, &packed, s(8), 4, false) },
		"MatMul a transposed":    func() { MatMul(true, 2, 4, 3, s(5), 2, &packed, s(8), 4, false) },
		"MatMul c":               func() { MatMul(false, 2, 4, 3, s(6), 3, &packed, s(7), 4, false) },
		"MatMul ldc":             func() { MatMul(false, 2, 4, 3, s(6), 3, &packed, s(8), 3, false) },
		"MatMul n":               func() { MatMul(false, 2, 5, 3, s(6), 3, &packed, s(10), 5, false) },
		"MatMul k":               func() { MatMul(false, 2, 4, 4, s(8), 4, &packed, s(8), 4, false) },
		"VecMat a":               func() { VecMat(3, 4, s(2), s(12), 4, s(4), false) },
		"VecMat b":               func() { VecMat(3, 4, s(3), s(11), 4, s(4), false) },
		"VecMat c":               func() { VecMat(3, 4, s(3), s(12), 4, s(3), false) },
		"Exp":                    func() { Exp(s(3), s(4)) },
		"SoftmaxBackward":        func() { SoftmaxBackward(s(3), s(4), 1) },
		"SiLUMul":                func() { SiLUMul(s(3), s(3), s(2)) },
		"SiLUMulBackward":        func() { SiLUMulBackward(s(3), s(3), s(3), s(2), s(3)) },
		"RMSNorm":                func() { RMSNorm(s(3), s(3), s(2), 1) },
		"RMSNorm empty":          func() { RMSNorm(nil, nil, nil, 1) },
		"RMSNormBackward":        func() { RMSNormBackward(s(3), s(3), s(3), s(3), s(2), 1, false) },
		"Rotate odd":             func() { Rotate(s(5), s(2), s(2), false) },
		"Rotate sin":             func() { Rotate(s(4), s(2), s(1), false) },
		"Add":                    func() { Add(s(3), s(2)) },
		"AdamW":                  func() { AdamW(s(3), s(3), s(3), s(2), NewAdamWStep(1, 0.9, 0.9, 1, 0, 1, 1)) },
		"NewAdamWStep step zero": func() { NewAdamWStep(1, 0.9, 0.9, 1, 0, 1, 0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
