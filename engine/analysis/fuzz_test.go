package analysis

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/parse"
)

func splitWords(s string) []string { return strings.Fields(s) }

// addSeeds gives the fuzzer the texts of the golden files.
func addSeeds(f *testing.F) {
	for _, file := range []string{"testdata/errors.txt", "testdata/programs.txt"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, section := range strings.Split(string(data), "\n=== ")[1:] {
			title, body, _ := strings.Cut(section, "\n")
			src, _, _ := strings.Cut(body, "\n---\n")
			if strings.HasPrefix(title, "after base") {
				src = base + "\n" + src
			}
			f.Add(src)
		}
	}
}

func checkFuzzError(t *testing.T, src string, err error) {
	errs, ok := errors.AsType[parse.Errors](err)
	if !ok || len(errs) == 0 {
		t.Fatalf("%q: %T", src, err)
	}
	for _, e := range errs {
		if e.Line < 1 || e.Column < 1 || e.SourceLine == "" || e.Message == "" {
			t.Fatalf("%q: error %+v", src, e)
		}
		if strings.ContainsAny(e.Message+e.Hint, "\n\r") {
			t.Fatalf("%q: an error of several lines: %q %q", src, e.Message, e.Hint)
		}
	}
}

// FuzzAnalyse holds that analysis ends without panic, that its IR is well
// formed, and that rules and views mean the same in their own text.
func FuzzAnalyse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		file, err := parse.Program(src)
		if err != nil {
			return
		}
		p, err := Analyse(file, src)
		if err != nil {
			checkFuzzError(t, src, err)
			return
		}
		for i := range p.Rules {
			checkBody(t, p, &p.Rules[i].Body)
		}
		for i := range p.Views {
			checkBody(t, p, &p.Views[i].Query().Body)
		}
		again, err := analyse(file.String())
		if err != nil {
			t.Fatalf("%q: its own text is refused: %v", src, err)
		}
		for i := range p.Rules {
			if p.Rules[i].Text != again.Rules[i].Text {
				t.Fatalf("%q: rule %q became %q", src, p.Rules[i].Text, again.Rules[i].Text)
			}
		}
	})
}

// FuzzAnalyseQuery holds the same of queries and transactions.
func FuzzAnalyseQuery(f *testing.F) {
	addSeeds(f)
	p := mustAnalyse(f, base)
	f.Fuzz(func(t *testing.T, src string) {
		if tree, err := parse.Query(src); err == nil {
			q, err := AnalyseQuery(p, tree)
			if err != nil {
				checkFuzzError(t, src, err)
				return
			}
			checkBody(t, p, &q.Body)
			if len(q.Output) == 0 || len(q.Output) != len(q.Columns) {
				t.Fatalf("%q: %d terms for %d columns", src, len(q.Output), len(q.Columns))
			}
		}
		if tree, err := parse.Transaction(src); err == nil {
			ops, err := CheckTransaction(p, tree)
			if err != nil {
				checkFuzzError(t, src, err)
				return
			}
			for _, op := range ops {
				if err := CheckRow(p, op.Relation, op.Row); err != nil {
					t.Fatalf("%q: %v", src, err)
				}
			}
		}
	})
}

// checkBody holds what the engine relies on: types agree, and what is compared
// is bound by an atom, unless it is a parameter of a query.
func checkBody(t *testing.T, p *Program, b *Body) {
	inAtom := make([]bool, len(b.Variables))
	for _, a := range b.Atoms {
		for i, term := range a.Terms {
			kind := term.Const.Kind()
			if !term.IsConst() {
				kind = b.Variables[term.Var].Type
				inAtom[term.Var] = true
			}
			if want := p.Relations[a.Relation].Columns[i].Type; kind != want {
				t.Fatalf("a term of type %v in a column of type %v", kind, want)
			}
		}
	}
	for _, c := range b.Comparisons {
		kinds := [2]string{}
		for i, term := range [2]Term{c.Left, c.Right} {
			kinds[i] = term.Const.Kind().String()
			if !term.IsConst() {
				kinds[i] = b.Variables[term.Var].Type.String()
			}
		}
		if kinds[0] != kinds[1] {
			t.Fatalf("a comparison of %s and %s", kinds[0], kinds[1])
		}
	}
	for i, v := range b.Variables {
		if v.Type.String() == "invalid" || v.Name == "" && !inAtom[i] {
			t.Fatalf("variable %d has type %v, stands in an atom: %v", i, v.Type, inAtom[i])
		}
	}
}
