package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestExpAccuracy holds Exp1 to the error bound that its documentation states.
func TestExpAccuracy(t *testing.T) {
	const bound = 8.5e-8
	worst, at := 0.0, float32(0)
	for x := float32(-87.3); x < 88.37; x += 0.00037 {
		want := math.Exp(float64(x))
		if e := math.Abs(float64(Exp1(x))-want) / want; e > worst {
			worst, at = e, x
		}
	}
	t.Logf("largest relative error %.3g at %v", worst, at)
	if worst > bound {
		t.Errorf("relative error %.3g at %v, bound %.3g", worst, at, bound)
	}
	inf := float32(math.Inf(1))
	for x, want := range map[float32]float32{0: 1, 88.38: inf, 1e30: inf, inf: inf, -87.69: 0, -1e30: 0, negInf: 0} {
		if got := Exp1(x); got != want {
			t.Errorf("Exp1(%v) = %v, want %v", x, got, want)
		}
	}
	if nan := Exp1(float32(math.NaN())); nan == nan {
		t.Errorf("Exp1(NaN) = %v", nan)
	}
}

// ulps is the distance of got from want in units of want's last place.
func ulps(got, want float64) float64 {
	return math.Abs(got-want) / (math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want))
}

func TestLogAccuracy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(0x1p-1022, math.MaxFloat64).Draw(t, "x")
		if got, want := Log(x), math.Log(x); ulps(got, want) > 1.5 {
			t.Fatalf("Log(%v) = %v, math says %v", x, got, want)
		}
	})
	for x := 0.5; x < 2; x += 1e-4 {
		if got, want := Log(x), math.Log(x); math.Abs(got-want) > 1.5e-16*math.Max(1, math.Abs(want)) {
			t.Fatalf("Log(%v) = %v, math says %v", x, got, want)
		}
	}
	// Below the normal range math.Log is wrong on amd64, so there the known value speaks.
	if v, want := Log(0x1p-1070), -1070*math.Ln2; math.Abs(v-want) > 1e-12 {
		t.Errorf("Log(2^-1070) = %v, want %v", v, want)
	}
	if v := Log(0); !math.IsInf(v, -1) {
		t.Errorf("Log(0) = %v", v)
	}
	if v := Log(math.Inf(1)); !math.IsInf(v, 1) {
		t.Errorf("Log(+Inf) = %v", v)
	}
	for _, x := range []float64{-1, math.NaN(), math.Inf(-1)} {
		if v := Log(x); v == v {
			t.Errorf("Log(%v) = %v, want NaN", x, v)
		}
	}
}

func TestExp64AndPowAccuracy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-700, 709).Draw(t, "x")
		if got, want := Exp64(x), math.Exp(x); ulps(got, want) > 2 {
			t.Fatalf("Exp64(%v) = %v, math says %v", x, got, want)
		}
		base, e := rapid.Float64Range(1, 1e6).Draw(t, "base"), rapid.Float64Range(-1, 1).Draw(t, "exponent")
		if got, want := Pow(base, e), math.Pow(base, e); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("Pow(%v, %v) = %v, math says %v", base, e, got, want)
		}
	})
	for x, want := range map[float64]float64{710: math.Inf(1), math.Inf(1): math.Inf(1), -746: 0, math.Inf(-1): 0, 0: 1} {
		if got := Exp64(x); got != want {
			t.Errorf("Exp64(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestSinCosAccuracy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-1<<29, 1<<29).Draw(t, "x")
		sin, cos := SinCos(x)
		wantSin, wantCos := math.Sincos(x)
		if math.Abs(sin-wantSin) > 4e-16 || math.Abs(cos-wantCos) > 4e-16 {
			t.Fatalf("SinCos(%v) = %v, %v, math says %v, %v", x, sin, cos, wantSin, wantCos)
		}
	})
	for _, x := range []float64{1<<29 + 1, math.Inf(1), math.NaN()} {
		if s, c := SinCos(x); s == s || c == c {
			t.Errorf("SinCos(%v) = %v, %v, want NaN", x, s, c)
		}
	}
}

// TestNormalisation checks what softmax and RMSNorm mean, not only that paths agree.
func TestNormalisation(t *testing.T) {
	onEachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 200).Draw(t, "n")
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rapid.Float64Range(-8, 8).Draw(t, "x"))
			}
			p := append([]float32(nil), x...)
			SoftmaxScaled(p, 0.5)
			total, sum := 0.0, 0.0
			for _, v := range x {
				total += math.Exp(float64(v) / 2)
			}
			for i, v := range x {
				sum += float64(p[i])
				if want := math.Exp(float64(v)/2) / total; math.Abs(float64(p[i])-want) > 2e-6*want {
					t.Fatalf("p[%d] = %v, want %v", i, p[i], want)
				}
			}
			if math.Abs(sum-1) > 1e-5 {
				t.Fatalf("probabilities sum to %v", sum)
			}
			y, gain := make([]float32, n), make([]float32, n)
			for i := range gain {
				gain[i] = 1
			}
			RMSNorm(y, x, gain, 1e-6)
			if want := SumSquares(x) / (SumSquares(x)/float64(n) + 1e-6); math.Abs(SumSquares(y)-want) > 1e-4*want+1e-9 {
				t.Fatalf("normalised row has square %v, want %v", SumSquares(y), want)
			}
		})
	})
}
