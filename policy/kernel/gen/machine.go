package main

// reg is a register of 16 float32 lanes. There are six of them on every machine; a machine keeps what is left of its
// registers for its own purposes.
type reg int

const (
	r0 reg = iota
	r1
	r2
	r3
	r4
	r5
)

// constant names a float32 or int32 in the constant table; scalar names a scalar argument of the kernel.
type (
	constant string
	scalar   string
)

// machine emits the instructions of one instruction set. An operand x is a reg, a constant or a scalar.
type machine interface {
	begin(k *kernel)
	end()
	// pass emits body as a loop over all elements and once more, with lanes beyond the end masked, for the rest.
	pass(body func())
	load(d reg, pointer string)
	store(s reg, pointer string)
	set(d reg, x any)
	add(d, a reg, x any)
	sub(d, a reg, x any)
	mul(d, a reg, x any)
	div(d, a reg, x any)
	sqrt(d, a reg)
	// atMost and atLeast clamp d; a NaN stays one.
	atMost(d reg, c constant)
	atLeast(d reg, c constant)
	// negate flips the sign of each lane.
	negate(d, a reg)
	// powerOfTwo turns the float32 1.5·2^23 + n into 2^n: its bits shifted left by 23, plus 127<<23.
	powerOfTwo(d reg)
	// sum adds x to acc, and larger sets acc = x where x > acc; both leave out lanes beyond the end.
	sum(acc, x reg)
	larger(acc, x reg)
	// foldSum and foldMax reduce the 16 lanes with the fixed tree and set every lane to the result.
	foldSum(r reg)
	foldMax(r reg)
	// result returns lane 0.
	result(name string, r reg)
}

// table holds the bits of the constants.
var table = []struct {
	name constant
	bits uint32
}{
	{"signBit", 0x80000000},
	{"negInf", 0xff800000},
	{"one", f(1)},
	{"expMax", f(89)},
	{"expMin", f(-88)},
	{"log2E", f(1.44269504088896341)},
	{"roundBit", f(12582912)},
	{"ln2High", f(0.693359375)},
	{"ln2Low", f(-2.12194440e-4)},
	{"expP0", f(1.9875691500e-4)},
	{"expP1", f(1.3981999507e-3)},
	{"expP2", f(8.3334519073e-3)},
	{"expP3", f(4.1665795894e-2)},
	{"expP4", f(1.6666665459e-1)},
	{"expP5", f(5.0000001201e-1)},
	{"bias", 127 << 23},
}
