package dataflow

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

var update = flag.Bool("update", false, "rewrite testdata")

// symbols interns for tests.
type symbols struct{ *value.Interner }

func (s symbols) ID(v value.Value) (value.ID, error) { return s.Intern(v) }

// config returns a configuration with a goal for each view of a program text.
func config(t testing.TB, source string) Config {
	t.Helper()
	file, err := parse.Program(source)
	if err != nil {
		t.Fatal(err)
	}
	program, err := analysis.Analyse(file, source)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Program: Prepare(program), Symbols: symbols{value.NewInterner()}}
	for _, r := range program.Relations {
		var table *relation.Relation
		if !r.Derived {
			table = relation.New(len(r.Columns), 0)
		}
		c.Tables = append(c.Tables, table)
	}
	for i := range program.Views {
		c.Goals = append(c.Goals, program.Views[i].Query())
	}
	return c
}

// TestDemand compares the rules and the plans that programs become with
// testdata/demand.txt; -update rewrites it.
func TestDemand(t *testing.T) {
	const path = "testdata/demand.txt"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "=== ")
	var got strings.Builder
	got.WriteString(head)
	for section := range strings.SplitSeq(rest, "\n=== ") {
		name, body, _ := strings.Cut(section, "\n")
		source, _, _ := strings.Cut(body, "---\n")
		fmt.Fprintf(&got, "=== %s\n%s---\n%s\n", name, source, transformed(t, source))
	}
	out := strings.TrimSuffix(got.String(), "\n")
	if *update {
		if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out != string(text) {
		t.Errorf("the programs become\n%s", out)
	}
}

// speller spells rules and plans.
type speller struct {
	names   map[*predicate]string
	symbols symbols
}

func transformed(t *testing.T, source string) string {
	c := config(t, source)
	tr, err := transform(c)
	if err != nil {
		t.Fatal(err)
	}
	s := speller{names: map[*predicate]string{}, symbols: c.Symbols.(symbols)}
	for i, g := range tr.goals {
		name := c.Program.program.Views[i].Name
		s.names[g.root], s.names[g.result] = "?"+name, name
	}
	for id, p := range tr.inputs {
		s.names[p] = c.Program.program.Relations[id].Name
	}
	for p, d := range tr.patterns {
		var name strings.Builder
		name.WriteString(c.Program.program.Relations[p.relation].Name + "/")
		for col := range c.Program.program.Relations[p.relation].Columns {
			if p.bound.Has(col) {
				name.WriteString("b")
			} else {
				name.WriteString("f")
			}
		}
		s.names[d.demand], s.names[d.rows] = "?"+name.String(), name.String()
	}
	for key, p := range tr.failures {
		s.names[p] = fmt.Sprintf("failed%d.%d", key.clause.Rule, key.stage)
	}
	others := 0
	for _, p := range tr.predicates {
		if s.names[p] == "" {
			s.names[p] = fmt.Sprintf("between%d", others)
			others++
		}
	}
	n := &Network{predicates: tr.predicates, used: map[*relation.Index]bool{}}
	n.connect(tr.rules)
	var out strings.Builder
	for id, l := range tr.levels {
		if l == whole && c.Program.program.Relations[id].Derived {
			fmt.Fprintln(&out, "whole:", c.Program.program.Relations[id].Name)
		}
	}
	for _, r := range tr.rules {
		fmt.Fprintln(&out, s.rule(r))
		for i := range r.body {
			fmt.Fprintf(&out, "    %s: %s\n", s.names[r.body[i].predicate], s.plan(n.newPlan(r, i)))
		}
		if r.head.predicate.component.recursive {
			fmt.Fprintf(&out, "    proof: %s\n", s.plan(n.newPlan(r, -1)))
		}
	}
	return out.String()
}

func (s speller) operand(o operand) string {
	switch o.register {
	case anything:
		return "_"
	case constant:
		return s.symbols.Value(o.constant).String()
	}
	return fmt.Sprintf("V%d", o.register)
}

func (s speller) atom(a atom) string {
	var terms []string
	for _, o := range a.terms {
		terms = append(terms, s.operand(o))
	}
	not := ""
	if a.negated {
		not = "!"
	}
	return not + s.names[a.predicate] + "(" + strings.Join(terms, ", ") + ")"
}

func (s speller) filter(f filter) string {
	op := []string{"=", "!=", "<", "<=", ">", ">="}[f.op]
	return s.operand(f.left) + " " + op + " " + s.operand(f.right)
}

func (s speller) rule(r *rule) string {
	var body []string
	for _, a := range r.body {
		body = append(body, s.atom(a))
	}
	for _, f := range r.filters {
		body = append(body, s.filter(f))
	}
	for _, c := range r.computations {
		body = append(body, s.computation(c))
	}
	text := s.atom(r.head) + " <- " + strings.Join(body, ", ")
	if r.computations != nil {
		text += " or " + s.atom(r.failure)
	}
	return text
}

func (s speller) computation(c computation) string {
	var args []string
	for _, o := range c.args {
		args = append(args, s.operand(o))
	}
	return fmt.Sprintf("V%d = %s(%s)", c.out, c.function.Name, strings.Join(args, ", "))
}

func (s speller) plan(p *plan) string {
	var steps []string
	for i := range p.steps {
		st := &p.steps[i]
		text := ""
		switch st.kind {
		case stepFilter:
			text = s.filter(st.filter)
		case stepCompute:
			text = s.computation(st.computation)
		case stepAbsent:
			text = "none in " + s.names[st.predicate]
			if st.access == stepLookup {
				text += fmt.Sprintf(" by %b", st.index.Columns())
			}
		case stepProbe:
			text = "probe " + s.names[st.predicate]
		case stepLookup:
			text = fmt.Sprintf("lookup %s by %b", s.names[st.predicate], st.index.Columns())
		case stepScan:
			text = "scan " + s.names[st.predicate]
		}
		if st.exclude {
			text += " without itself"
		}
		if st.inside {
			text += " older"
		}
		steps = append(steps, text)
	}
	text := strings.Join(steps, "; ")
	if p.flips {
		text = "not: " + text
	}
	if p.other != nil {
		text += " | " + s.plan(p.other)
	}
	return text
}

// TestPatternsAreBounded takes a program whose rules ask for every subset of a
// relation's columns.
func TestPatternsAreBounded(t *testing.T) {
	const columns = 12
	var names, declared, parameters []string
	for i := range columns {
		names = append(names, fmt.Sprintf("X%d", i))
		declared = append(declared, fmt.Sprintf("c%d: int", i))
		parameters = append(parameters, fmt.Sprintf("$p%d: int", i))
	}
	var source strings.Builder
	source.WriteString("+b(" + strings.Join(declared, ", ") + ")\n+e(x: int)\n")
	head := "p(" + strings.Join(names, ", ") + ")"
	source.WriteString(head + " <- b(" + strings.Join(names, ", ") + ")\n")
	for i := range columns {
		other := slices.Clone(names)
		other[i] = "Y"
		source.WriteString(fmt.Sprintf("%s <- p(%s), e(X%d)\n", head, strings.Join(other, ", "), i))
	}
	source.WriteString("view v(" + strings.Join(parameters, ", ") + ") := ?p(" +
		strings.ReplaceAll(strings.Join(names, ", "), "X", "$p") + ")\n")
	c := config(t, source.String())
	tr, err := transform(c)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tr.patterns); n != patternsMax+1 {
		t.Errorf("%d patterns, want %d and the free one", n, patternsMax)
	}
}

// TestRightLinearIsNotQuadratic asks for what one node of a cycle reaches by a
// right-linear rule.
func TestRightLinearIsNotQuadratic(t *testing.T) {
	const nodes = 300
	c := config(t, `
+edge(src: int, dst: int)
path(X, Y) <- edge(X, Y)
path(X, Z) <- edge(X, Y), path(Y, Z)
view from($x: int) := ?path($x, Y)
`)
	n, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := c.Program.program.RelationNamed("edge")
	for i := range value.ID(nodes) {
		n.Insert(id, []value.ID{i, (i + 1) % nodes})
	}
	n.Demand(0, []value.ID{7})
	if _, _, err := n.Settle(); err != nil {
		t.Fatal(err)
	}
	if rows := n.Result(0).Len(); rows != nodes {
		t.Errorf("%d rows, want %d", rows, nodes)
	}
	if rows := n.DerivedRows(); rows > 4*nodes {
		t.Errorf("%d derived rows for a result of %d", rows, nodes)
	}
}

// TestBoundRecursionIsNotQuadratic asks whether one node of a graph reaches another, by
// both columns.
func TestBoundRecursionIsNotQuadratic(t *testing.T) {
	const nodes = 600
	for _, body := range []string{"edge(X, Y), path(Y, Z)", "path(X, Y), edge(Y, Z)"} {
		c := config(t, "+edge(src: int, dst: int)\npath(X, Y) <- edge(X, Y)\n"+
			"path(X, Z) <- "+body+"\nview from($x: int, $y: int) := ?path($x, $y)\n")
		n, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range nodes {
			n.Insert(0, ids(i, (i+1)%nodes))
			n.Insert(0, ids(i, (7*i+3)%nodes))
		}
		n.Demand(0, ids(7, 77))
		if _, _, err := n.Settle(); err != nil {
			t.Fatal(err)
		}
		if n.Result(0).Len() != 1 {
			t.Errorf("%s: the way from 7 to 77 is not found", body)
		}
		if most := uint64(40 * nodes); n.Steps() > most {
			t.Errorf("%s: %d steps, more than %d", body, n.Steps(), most)
		}
	}
}
