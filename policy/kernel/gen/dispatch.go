package main

import (
	"fmt"
	"strings"
)

// suffix is what a path's assembly functions end in.
var suffix = map[string]string{"avx512": "AVX512", "avx2": "AVX2", "neon": "NEON"}

// dispatch returns the Go functions that run a kernel on the path they are given, and the declarations of the
// assembly.
func dispatch(paths ...string) string {
	var b strings.Builder
	p := func(f string, args ...any) { fmt.Fprintf(&b, f, args...) }
	if len(paths) == 0 {
		p("var supported = []path{portable}\n\n")
	}
	for _, k := range kernels {
		result, hasResult := "", len(k.results) > 0
		if hasResult {
			result = fmt.Sprintf(" (%s float32)", strings.Join(k.results, ", "))
		}
		parameters := strings.Join(k.pointers, ", ") + " []float32"
		arguments := strings.Join(k.pointers, ", ")
		assembly := make([]string, 0, len(k.pointers)+1+len(k.scalars))
		for _, name := range k.pointers {
			assembly = append(assembly, "&"+name+"[0]")
		}
		assembly = append(assembly, "len("+k.pointers[0]+")")
		switch {
		case k.aggregate != "":
			parameters += ", " + k.aggregate
			variable, _, _ := strings.Cut(k.aggregate, " ")
			arguments += ", " + variable
			for _, s := range k.scalars {
				assembly = append(assembly, variable+"."+s)
			}
		case len(k.scalars) > 0:
			parameters += ", " + strings.Join(k.scalars, ", ") + " float32"
			arguments += ", " + strings.Join(k.scalars, ", ")
			assembly = append(assembly, k.scalars...)
		}
		give := ""
		if hasResult {
			give = "return "
		}
		p("func %s(on path, %s)%s {\n", k.name, parameters, result)
		if len(paths) > 0 {
			p("switch on {\n")
			for _, path := range paths {
				p("case %s:\n%s%s%s(%s)\n", path, give, k.name, suffix[path], strings.Join(assembly, ", "))
			}
			p("default:\n%s%sPortable(%s)\n}\n", give, k.name, arguments)
		} else {
			p("%s%sPortable(%s)\n", give, k.name, arguments)
		}
		p("}\n\n")
	}
	for _, path := range paths {
		for _, k := range kernels {
			p("//go:noescape\nfunc %s%s%s\n\n", k.name, suffix[path], signature(k))
		}
	}
	return b.String()
}

// signature returns the parameters and results of a kernel's assembly.
func signature(k *kernel) string {
	s := "(" + strings.Join(k.pointers, ", ") + " *float32, n int"
	if len(k.scalars) > 0 {
		s += ", " + strings.Join(k.scalars, ", ") + " float32"
	}
	s += ")"
	if len(k.results) > 0 {
		s += " (" + strings.Join(k.results, ", ") + " float32)"
	}
	return s
}

// frame gives the stack offset of each argument and result, and their total size.
func frame(k *kernel) (at map[string]int, size int) {
	at = map[string]int{}
	for _, p := range k.pointers {
		at[p], size = size, size+8
	}
	at["n"], size = size, size+8
	for _, s := range k.scalars {
		at[s], size = size, size+4
	}
	if len(k.results) > 0 {
		size = (size + 7) / 8 * 8
	}
	for _, r := range k.results {
		at[r], size = size, size+4
	}
	return at, size
}
