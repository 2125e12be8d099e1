package parse

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// addSeeds gives the fuzzer every text of the error file and some good ones.
func addSeeds(f *testing.F) {
	data, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, section := range strings.Split(string(data), "\n=== ")[1:] {
		_, body, _ := strings.Cut(section, "\n")
		src, _, _ := strings.Cut(body, "\n---\n")
		f.Add(src)
	}
	f.Add("+e(a: int, b: string)\nr(X) <- e(X, \"\\u00e9\\\\\"), X <= -5, X != 1.5\n")
	f.Add("view v($a: int, $b: float) := ?r($a, _), X = $b.\nseed +e[(1, \"x\"), (-2, \"\")]")
	f.Add("?r($k, Y), Y > 7 /* a /* b */ */ // c")
	for _, c := range programs {
		f.Add(c.src)
	}
	f.Add("-e(X, Y), +e(Y, len(X) * -2) <- e(X, Y), !f(X, null), Y != x\"00\"")
	f.Add("?r(X, Y:desc), (X + 1) % 2 > t\"2026-11-30T12:00:00Z\" limit 5 offset 3")
	f.Add("+e[(1, 2)]\n-e(true, 1.0e-7).")
}

// check holds what every text must: an error of good form, or a tree whose own
// text parses to the same text.
func check[T fmt.Stringer](t *testing.T, src string, parse func(string) (T, error)) {
	tree, err := parse(src)
	if err != nil {
		checkErrors(t, src, err)
		return
	}
	text := tree.String()
	again, err := parse(text)
	if err != nil {
		t.Fatalf("of %q came %q, which is refused: %v", src, text, err)
	}
	if got := again.String(); got != text {
		t.Fatalf("of %q came %q, and of that %q", src, text, got)
	}
}

func checkErrors(t *testing.T, src string, err error) {
	errs, ok := errors.AsType[Errors](err)
	if !ok || len(errs) == 0 || len(errs) > errorsMax {
		t.Fatalf("%q: %T with %d errors", src, err, len(errs))
	}
	lines := strings.Count(src, "\n") + 1
	for i, e := range errs {
		if e.Line < 1 || e.Line > lines || e.Column < 1 || e.Message == "" {
			t.Fatalf("%q: error %+v", src, e)
		}
		if i > 0 && e.Before(errs[i-1].Position) {
			t.Fatalf("%q: errors out of order", src)
		}
		if strings.ContainsAny(e.Message+e.Hint, "\n\r") {
			t.Fatalf("%q: an error of several lines: %q %q", src, e.Message, e.Hint)
		}
		_ = e.Detail()
	}
}

func FuzzProgram(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src string) { check(t, src, Program) })
}

func FuzzTransaction(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src string) { check(t, src, Transaction) })
}

func FuzzQuery(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src string) { check(t, src, Query) })
}
