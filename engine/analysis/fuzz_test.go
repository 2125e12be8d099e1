package analysis

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
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
			checkBody(t, p, &p.Rules[i].Body, 0)
		}
		for i := range p.Views {
			for j := range p.Views[i].Parts {
				checkBody(t, p, &p.Views[i].Parts[j].Query.Body, len(p.Views[i].Parameters))
			}
		}
		for i := range p.Actions {
			for j := range p.Actions[i].Statements {
				checkStatement(t, p, &p.Actions[i].Statements[j])
			}
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
	f.Add("-edge(X, Y), +edge(Y, X + 1) <- edge(X, Y), !r1(X, _), Y != 5")
	f.Fuzz(func(t *testing.T, src string) {
		if tree, err := parse.Query(src); err == nil {
			q, err := AnalyseQuery(p, tree)
			if err != nil {
				checkFuzzError(t, src, err)
				return
			}
			checkBody(t, p, &q.Body, len(q.Parameters))
			if len(q.Output) == 0 || len(q.Output) != len(q.Columns) {
				t.Fatalf("%q: %d terms for %d columns", src, len(q.Output), len(q.Columns))
			}
		}
		if tree, err := parse.Transaction(src); err == nil {
			statements, err := CheckTransaction(p, tree)
			if err != nil {
				checkFuzzError(t, src, err)
				return
			}
			for i := range statements {
				checkStatement(t, p, &statements[i])
			}
		}
	})
}

// checkStatement holds what the engine relies on.
func checkStatement(t *testing.T, p *Program, s *Statement) {
	for _, op := range s.Ops {
		if err := CheckRow(p, op.Relation, op.Row); err != nil {
			t.Fatal(err)
		}
	}
	if s.Query == nil {
		return
	}
	checkBody(t, p, &s.Query.Body, len(s.Query.Parameters))
	for _, h := range s.Heads {
		row := make([]value.Value, len(h.Terms))
		for i, term := range h.Terms {
			row[i] = term.Const
			if !term.IsConst() {
				row[i] = sample(s.Query.Columns[term.Var].Type)
			}
		}
		if err := CheckRow(p, h.Relation, row); err != nil {
			t.Fatal(err)
		}
	}
}

func sample(kind value.Kind) value.Value {
	float, _ := value.OfFloat(1)
	return map[value.Kind]value.Value{
		value.Int: value.OfInt(1), value.Float: float, value.String: value.OfString(""),
		value.Bool: value.OfBool(true), value.Bytes: value.OfBytes(""),
		value.Timestamp: value.OfTimestamp(1),
	}[kind]
}

// checkBody holds what the engine relies on: types agree, computations are in order,
// and what is compared, computed with or negated is bound by an atom, a computation
// or a parameter, except the `_` of negations.
func checkBody(t *testing.T, p *Program, b *Body, parameters int) {
	bound := make([]bool, len(b.Variables))
	uses := make([]int, len(b.Variables))
	for i := range parameters {
		bound[i] = true
	}
	kind := func(term Term) value.Kind {
		if term.IsConst() {
			return term.Const.Kind()
		}
		return b.Variables[term.Var].Type
	}
	for i, a := range slices.Concat(b.Atoms, b.Negations) {
		for j, term := range a.Terms {
			if !term.IsConst() {
				uses[term.Var]++
				bound[term.Var] = bound[term.Var] || i < len(b.Atoms)
			}
			want := p.Relations[a.Relation].Columns[j].Type
			if got := kind(term); got != want && got != value.Null {
				t.Fatalf("a term of type %v in a column of type %v", got, want)
			}
		}
	}
	for _, c := range b.Computations {
		for i, term := range c.Args {
			want := c.Function.Params[min(i, len(c.Function.Params)-1)]
			if got := kind(term); got != want && got != value.Null {
				t.Fatalf("%s of %v, want %v", c.Function.Name, got, want)
			}
			if !term.IsConst() && !bound[term.Var] {
				t.Fatalf("%s has an unbound argument", c.Function.Name)
			}
		}
		if c.Function.Result != b.Variables[c.Out].Type {
			t.Fatalf("%s is put in a variable of another type", c.Function.Name)
		}
		bound[c.Out] = true
	}
	for _, c := range b.Comparisons {
		left, right := kind(c.Left), kind(c.Right)
		if left != right && left != value.Null && right != value.Null {
			t.Fatalf("a comparison of %v and %v", left, right)
		}
		for _, term := range [2]Term{c.Left, c.Right} {
			if !term.IsConst() && !bound[term.Var] {
				t.Fatal("an unbound variable is compared")
			}
		}
	}
	for i, v := range b.Variables {
		if v.Type == value.Invalid || v.Type == value.Null || !bound[i] && (v.Name != "" || uses[i] != 1) {
			t.Fatalf("variable %d has type %v, is bound: %v", i, v.Type, bound[i])
		}
	}
}
