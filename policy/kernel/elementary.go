package kernel

import "math"

// Log returns the natural logarithm of x, within 1 ulp (FreeBSD's e_log.c). Log(+Inf) is +Inf, Log(±0) is -Inf, Log of a
// negative number or NaN is NaN.
func Log(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		l1    = 6.666666666666735130e-01
		l2    = 3.999999999940941908e-01
		l3    = 2.857142874366239149e-01
		l4    = 2.222219843214978396e-01
		l5    = 1.818357216161805012e-01
		l6    = 1.531383769920937332e-01
		l7    = 1.479819860511658591e-01
	)
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f *= 2
		e--
	}
	f--
	k := float64(e)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := l5 + float64(s4*l7)
	t1 = l3 + float64(s4*t1)
	t1 = l1 + float64(s4*t1)
	t2 := l4 + float64(s4*l6)
	t2 = l2 + float64(s4*t2)
	r := float64(s2*t1) + float64(s4*t2)
	half := float64(0.5 * float64(f*f))
	low := float64(s*(half+r)) + float64(k*ln2Lo)
	return float64(k*ln2Hi) - ((half - low) - f)
}

// Exp64 returns e**x, within 1 ulp (FreeBSD's e_exp.c). It overflows to +Inf and underflows to 0.
func Exp64(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		log2e = 1.44269504088896338700e+00
		p1    = 1.66666666666666657415e-01
		p2    = -2.77777777770155933842e-03
		p3    = 6.61375632143793436117e-05
		p4    = -1.65339022054652515390e-06
		p5    = 4.13813679705723846039e-08
	)
	switch {
	case x != x:
		return x
	case x > 709.782712893384:
		return math.Inf(1)
	case x < -745.1332191019412:
		return 0
	}
	k := math.Floor(float64(x*log2e) + 0.5)
	hi := x - float64(k*ln2Hi)
	lo := float64(k * ln2Lo)
	r := hi - lo
	t := float64(r * r)
	c := p4 + float64(t*p5)
	c = p3 + float64(t*c)
	c = p2 + float64(t*c)
	c = p1 + float64(t*c)
	c = r - float64(t*c)
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi)
	return math.Ldexp(y, int(k))
}

// Pow returns base**exponent for base > 0, as Exp64(exponent·Log(base)). Its relative error is about |exponent·ln base|
// ulp, which suits what it is for: the frequencies of a rotary embedding.
func Pow(base, exponent float64) float64 {
	return Exp64(float64(exponent * Log(base)))
}

// SinCos returns the sine and cosine of x radians, with an absolute error below 4e-16 for |x| <= 2**29 (Cephes). For
// larger or infinite x, and for NaN, both results are NaN: no position times frequency is that large.
func SinCos(x float64) (sin, cos float64) {
	const (
		// π/4 in three parts; the first two have so few bits that their products below are exact.
		pi4A = 7.85398125648498535156e-1
		pi4B = 3.77489470793079817668e-8
		pi4C = 2.69515142907905952645e-15
		four = 4 / math.Pi

		s0 = 1.58962301576546568060e-10
		s1 = -2.50507477628578072866e-8
		s2 = 2.75573136213857245213e-6
		s3 = -1.98412698295895385996e-4
		s4 = 8.33333333332211858878e-3
		s5 = -1.66666666666666307295e-1

		c0 = -1.13585365213876817300e-11
		c1 = 2.08757008419747316778e-9
		c2 = -2.75573141792967388112e-7
		c3 = 2.48015872888517045348e-5
		c4 = -1.38888888888730564116e-3
		c5 = 4.16666666666665929218e-2
	)
	if !(math.Abs(x) <= 1<<29) {
		return math.NaN(), math.NaN()
	}
	negative := math.Signbit(x)
	x = math.Abs(x)
	octant := uint64(float64(x * four))
	octant += octant & 1 // to the nearest multiple of π/2
	y := float64(octant)
	z := x - float64(y*pi4A)
	z = z - float64(y*pi4B)
	z = z - float64(y*pi4C)
	zz := float64(z * z)

	p := s1 + float64(s0*zz)
	p = s2 + float64(p*zz)
	p = s3 + float64(p*zz)
	p = s4 + float64(p*zz)
	p = s5 + float64(p*zz)
	sin = z + float64(float64(z*zz)*p)

	q := c1 + float64(c0*zz)
	q = c2 + float64(q*zz)
	q = c3 + float64(q*zz)
	q = c4 + float64(q*zz)
	q = c5 + float64(q*zz)
	cos = 1 - float64(0.5*zz)
	cos = cos + float64(float64(zz*zz)*q)

	quadrant := octant / 2 & 3
	if quadrant&1 == 1 {
		sin, cos = cos, sin
	}
	if quadrant == 2 || quadrant == 3 {
		sin = -sin
	}
	if quadrant == 1 || quadrant == 2 {
		cos = -cos
	}
	if negative {
		sin = -sin
	}
	return sin, cos
}
