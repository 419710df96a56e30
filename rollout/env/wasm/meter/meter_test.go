package meter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// A module of the tests has the types below, imports fd_read, has one page of memory that may grow to 4, and exports its
// first function as f.
var types = []signature{
	0: {[]byte{i32, i32, i32, i32}, []byte{i32}},
	1: {nil, nil},
	2: {[]byte{i64}, []byte{i64}},
	3: {[]byte{i64}, []byte{i64, i64}},
}

type body struct {
	typ    byte
	locals []byte
	code   []byte
}

// firstFunction is the index of a module's first own function: fd_read comes before.
const firstFunction = 1

func sized(b []byte) []byte { return append(appendU32(nil, uint32(len(b))), b...) }

func section(id byte, content ...[]byte) []byte {
	return append([]byte{id}, sized(slices.Concat(content...))...)
}

func assemble(functions ...body) []byte {
	typeList := appendU32(nil, uint32(len(types)))
	for _, s := range types {
		typeList = slices.Concat(typeList, []byte{0x60}, sized(s.params), sized(s.results))
	}
	list, code := []byte{byte(len(functions))}, []byte{byte(len(functions))}
	for _, f := range functions {
		list = append(list, f.typ)
		locals := []byte{byte(len(f.locals))}
		for _, t := range f.locals {
			locals = append(locals, 1, t)
		}
		code = append(code, sized(slices.Concat(locals, f.code, []byte{opEnd}))...)
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, typeList),
		section(2, []byte{1}, sized([]byte(importFrom)), sized([]byte(importName)), []byte{0, 0}),
		section(3, list),
		section(5, []byte{1, 1, 1, 4}),
		section(7, []byte{1}, sized([]byte("f")), []byte{0, firstFunction}),
		section(10, code))
}

// outcome is what a call gave and took.
type outcome struct {
	results []uint64
	steps   int64
	depth   uint32
	err     string
}

var errUsedUp = errors.New("used up")

// engines are the compiler and the interpreter: two implementations that have to agree.
var engines = map[string]func() wazero.RuntimeConfig{
	"compiler": wazero.NewRuntimeConfigCompiler, "interpreter": wazero.NewRuntimeConfigInterpreter,
}

// play rewrites a module and calls f with so many steps, of which it gets few at a time.
func play(t *testing.T, engine string, module []byte, depth int32, steps int64, arguments ...uint64) outcome {
	t.Helper()
	rewritten, err := Rewrite(module, depth)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, engines[engine]().WithCoreFeatures(api.CoreFeaturesV2))
	defer runtime.Close(ctx)
	reserve := steps
	read := func(_ context.Context, m api.Module, stack []uint64) {
		have := m.ExportedGlobal(Steps).(api.MutableGlobal)
		if uint32(stack[0]) != Yield || int64(have.Get()) >= 0 {
			panic("it asks without need")
		}
		if reserve+int64(have.Get()) < 0 {
			panic(errUsedUp)
		}
		add := min(reserve, 100-int64(have.Get()))
		reserve -= add
		have.Set(have.Get() + uint64(add))
		stack[0] = 8
	}
	_, err = runtime.NewHostModuleBuilder(importFrom).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(read), []api.ValueType{i32, i32, i32, i32}, []api.ValueType{i32}).
		Export(importName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m, err := runtime.Instantiate(ctx, rewritten)
	if err != nil {
		t.Fatalf("%v\n%x", err, rewritten)
	}
	var o outcome
	o.results, err = m.ExportedFunction("f").Call(ctx, arguments...)
	o.steps = steps - reserve - int64(m.ExportedGlobal(Steps).Get())
	o.depth = uint32(m.ExportedGlobal(Depth).Get())
	if err != nil {
		o.err, _, _ = strings.Cut(err.Error(), "\n")
	}
	return o
}

// everywhere plays with both engines, which must agree.
func everywhere(t *testing.T, module []byte, depth int32, steps int64, arguments ...uint64) outcome {
	t.Helper()
	o := play(t, "compiler", module, depth, steps, arguments...)
	if other := play(t, "interpreter", module, depth, steps, arguments...); fmt.Sprint(o) != fmt.Sprint(other) {
		t.Errorf("the engines differ: %+v and %+v", o, other)
	}
	return o
}

// sum adds the numbers from its argument down to 1.
var sum = body{2, []byte{i64}, []byte{
	opBlock, empty,
	opLoop, empty,
	opLocalGet, 0, 0x50, opBrIf, 1, // leave at 0
	opLocalGet, 1, opLocalGet, 0, 0x7c, opLocalSet, 1,
	opLocalGet, 0, opI64Const, 1, opI64Sub, opLocalSet, 0,
	opBr, 0,
	opEnd,
	opEnd,
	opLocalGet, 1,
}}

func TestStepsAreInstructions(t *testing.T) {
	for _, n := range []uint64{0, 1, 2, 1000} {
		o := everywhere(t, assemble(sum), 1000, 1<<30, n)
		// block, loop, 12 instructions a turn, 3 of the last, the end of the block, and two more. The end of the loop is
		// never reached.
		if want := int64(2 + 12*n + 3 + 1 + 2 - 1); o.err != "" || o.results[0] != n*(n+1)/2 || o.depth != 0 || o.steps != want {
			t.Errorf("n = %d: %+v, want %d steps", n, o, want)
		}
	}
}

func TestStepsEndEverywhereAlike(t *testing.T) {
	module := assemble(sum)
	needed := play(t, "compiler", module, 1000, 1<<30, 500).steps
	for _, steps := range []int64{0, 1, 100, needed / 2, needed - 30, needed} {
		o := everywhere(t, module, 1000, steps, 500)
		if ended := strings.Contains(o.err, "used up"); ended != (steps < needed-20) {
			t.Errorf("%d of %d steps: %+v", steps, needed, o)
		}
		if o.steps > steps+20 {
			t.Errorf("it took %d of %d steps", o.steps, steps)
		}
	}
	endless := assemble(body{1, nil, []byte{opLoop, empty, opBr, 0, opEnd}})
	if o := everywhere(t, endless, 1000, 100_000); !strings.Contains(o.err, "used up") {
		t.Errorf("an endless loop: %+v", o)
	}
}

// recurse calls itself as often as its argument says, and leaves in every way there is.
var recurse = body{3, nil, []byte{
	opBlock, empty,
	opLocalGet, 0, opI64Const, 3, 0x82 /* i64.rem_u */, 0x50, opBrIf, 0,
	opI64Const, 7, opLocalGet, 0, opI64Const, 1, opI64Sub, opCall, firstFunction, 0x7c, opReturn,
	opEnd,
	opI64Const, 9, opLocalGet, 0,
	opLocalGet, 0, 0x50, opBrIf, 0, // to the function's end
	opDrop, opLocalGet, 0, opI64Const, 1, opI64Sub, opCall, firstFunction, opDrop,
}}

func TestDepthIsGivenBack(t *testing.T) {
	const cost = callCost + 1
	module := assemble(recurse)
	for _, n := range []uint64{0, 1, 2, 3, 10, 90} {
		if o := everywhere(t, module, 100*cost, 1<<30, n); o.err != "" || o.depth != 0 || len(o.results) != 2 {
			t.Errorf("n = %d: %+v", n, o)
		}
		if n > 0 {
			if o := everywhere(t, module, int32(n)*cost, 1<<30, n); !strings.Contains(o.err, "unreachable") || o.depth != uint32(n+1)*cost {
				t.Errorf("n = %d, too deep: %+v", n, o)
			}
		}
	}
}

func TestBulkInstructionsCostWhatTheyMove(t *testing.T) {
	fill := func(n int64) []byte {
		code := appendSigned([]byte{opI32Const, 0, opI32Const, 1, opI32Const}, n)
		return assemble(body{1, nil, append(code, opBulk, 11, 0)})
	}
	few, many := everywhere(t, fill(8), 1000, 1<<30), everywhere(t, fill(65536), 1000, 1<<30)
	if few.err != "" || many.err != "" || many.steps-few.steps != 65536/8-1 {
		t.Errorf("filling took %+v and %+v", few, many)
	}
	if o := everywhere(t, fill(1<<31-1), 1000, 1<<20); !strings.Contains(o.err, "used up") {
		t.Errorf("filling more than there are steps: %+v", o)
	}
	grow := func(n byte) []byte {
		return assemble(body{1, nil, []byte{opI32Const, n, opMemoryGrow, 0, opDrop}})
	}
	if a, b := everywhere(t, grow(0), 1000, 1<<30), everywhere(t, grow(3), 1000, 1<<30); b.steps-a.steps != 3*8192 {
		t.Errorf("growing took %+v and %+v", a, b)
	}
}

func TestNotANumberIsCanonical(t *testing.T) {
	const want32, want64 = 0x7fc00000, 0x7ff8000000000000
	strange32 := binary.LittleEndian.AppendUint32([]byte{opF32Const}, 0xff812345)
	strange64 := binary.LittleEndian.AppendUint64([]byte{opF64Const}, 0xfff0000000012345)
	one64 := binary.LittleEndian.AppendUint64([]byte{opF64Const}, 0x3ff0000000000000)
	zero64 := append([]byte{opF64Const}, make([]byte, 8)...)
	wide := []byte{0xbd}         // i64.reinterpret_f64
	narrow := []byte{0xbc, 0xad} // i32.reinterpret_f32, i64.extend_i32_u
	splat := func(scalar []byte, op byte) []byte { return append(slices.Clone(scalar), opVector, op) }
	lane := []byte{opVector, 0x21, 1} // f64x2.extract_lane 1
	for name, c := range map[string]struct {
		code []byte
		want uint64
	}{
		"0/0":          {slices.Concat(zero64, zero64, []byte{0xa3}, wide), want64},
		"sqrt":         {slices.Concat(one64, []byte{0x9a, 0x9f}, wide), want64},
		"1+strange":    {slices.Concat(one64, strange64, []byte{0xa0}, wide), want64},
		"min":          {slices.Concat(strange64, one64, []byte{0xa4}, wide), want64},
		"promote":      {slices.Concat(strange32, []byte{0xbb}, wide), want64},
		"demote":       {slices.Concat(strange64, []byte{0xb6}, narrow), want32},
		"f32 mul":      {slices.Concat(strange32, strange32, []byte{0x94}, narrow), want32},
		"f32 nearest":  {slices.Concat(strange32, []byte{0x90}, narrow), want32},
		"1+1":          {slices.Concat(one64, one64, []byte{0xa0}, wide), 0x4000000000000000},
		"neg is exact": {slices.Concat(strange64, []byte{0x9a}, wide), 0x7ff0000000012345},
		"f64x2 div":    {slices.Concat(splat(zero64, 0x14), splat(zero64, 0x14), []byte{opVector, 0xf3, 1}, lane, wide), want64},
		"f64x2 add":    {slices.Concat(splat(one64, 0x14), splat(one64, 0x14), []byte{opVector, 0xf0, 1}, lane, wide), 0x4000000000000000},
		"f32x4 add":    {slices.Concat(splat(strange32, 0x13), splat(strange32, 0x13), []byte{opVector, 0xe4, 1}, []byte{opVector, 0x1f, 3}, narrow), want32},
	} {
		if o := everywhere(t, assemble(body{2, nil, c.code}), 1000, 1000, 0); o.err != "" || o.results[0] != c.want {
			t.Errorf("%s: %+v, want %x", name, o, c.want)
		}
	}
}

func TestRewriteRefuses(t *testing.T) {
	sound := assemble(sum)
	code := func(b ...byte) []byte { return assemble(body{1, nil, b}) }
	twice, err := Rewrite(sound, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for says, module := range map[string][]byte{
		"no WebAssembly module":             []byte("hello"),
		"a WebAssembly component":           append([]byte("\x00asm\x0d\x00\x01\x00"), sound[8:]...),
		"does not import fd_read":           sound[:8],
		"is the meter's name":               twice,
		"global 0 of 0":                     code(opGlobalGet, 0, opGlobalSet, 0),
		"local 0 of 0":                      code(opLocalGet, 0, opDrop),
		"label 1 of 1":                      code(opBr, 1),
		"function 2 of 2":                   code(opCall, 2),
		"type 4 of 4":                       code(opBlock, 4, opEnd),
		"instruction 0x12":                  code(0x12, 0),
		"instruction 0xfe":                  code(0xfe, 0x10, 2, 0),
		"a table that grows":                code(opBulk, 15, 0),
		"relaxed vector instructions":       code(opVector, 0x80, 2),
		"is not in its place":               append(slices.Clone(sound), section(1, []byte{0})...),
		"newer than WebAssembly 2.0":        append(slices.Clone(sound), section(13, []byte{0})...),
		"the module ends too early":         sound[:len(sound)-1],
		"there is more than there should":   assemble(body{1, nil, []byte{opEnd, opEnd}}),
		"more than 8192 locals":             nil,
		"one memory is allowed":             code(opI32Const, 0, 0x28, 0x42, 0, 0, opDrop),
		"import \"a\".\"m\", which is no f": nil,
	} {
		switch says {
		case "more than 8192 locals":
			module = code()
			at := bytes.LastIndexByte(module, 10)
			module = append(module[:at:at], section(10, []byte{1}, sized([]byte{1, 0x81, 0x40, i64, opEnd}))...)
		case "import \"a\".\"m\", which is no f":
			says = `imports "a"."m", which is no function`
			module = slices.Concat(sound[:8], section(2, []byte{1, 1, 'a', 1, 'm', 2, 0, 1}))
		}
		_, err := Rewrite(module, 1000)
		var own *Error
		if !errors.As(err, &own) || !strings.Contains(own.Why, says) {
			t.Errorf("%v, want …%s…", err, says)
		}
	}
}

func TestRewriteIsPure(t *testing.T) {
	module := assemble(recurse, sum)
	before := bytes.Clone(module)
	a, err := Rewrite(module, 1000)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Rewrite(module, 1000)
	if err != nil || !bytes.Equal(a, b) || !bytes.Equal(module, before) {
		t.Errorf("it gives other bytes, or changes the module: %v", err)
	}
}

// FuzzRewrite: whatever the bytes, Rewrite returns a module or an *Error; and what the engine accepts it accepts rewritten.
func FuzzRewrite(f *testing.F) {
	f.Add(assemble(sum))
	f.Add(assemble(recurse, sum))
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add(append(assemble(sum), section(dataSection, dataSectionOf([]place{{100, []byte{1}}, {103, []byte{2}}, {50, []byte{3}}}))...))
	f.Fuzz(func(t *testing.T, module []byte) {
		rewritten, err := Rewrite(module, 1000)
		var own *Error
		if err != nil {
			if !errors.As(err, &own) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		ctx := context.Background()
		runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(16))
		defer runtime.Close(ctx)
		if _, err := runtime.CompileModule(ctx, module); err != nil {
			return
		}
		if _, err := runtime.CompileModule(ctx, rewritten); err != nil {
			t.Fatalf("the engine takes it, and refuses it rewritten: %v", err)
		}
	})
}
