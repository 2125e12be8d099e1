package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

var clingoPrograms = flag.Uint64("oracle.clingo", 500, "how many programs TestClingo runs")

// clingoTogether is how many programs one process of clingo gets.
const clingoTogether = 50

// TestClingo compares the engine, and its slow twin, with clingo on random programs
// with recursion and negation after random transactions. clingo shares not even an
// author with them.
func TestClingo(t *testing.T) {
	if _, err := exec.LookPath("clingo"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("clingo is not installed: it is in Debian's package gringo")
	}
	first := rand.Uint64()>>1 + 1
	if *oracleSeed != 0 {
		first = *oracleSeed
	}
	t.Logf("first seed %d", first)
	constructs := &histogram{}
	for seed := first; seed < first+*clingoPrograms; seed += clingoTogether {
		var together []*clingoProgram
		var text strings.Builder
		for i := range uint64(clingoTogether) {
			c, err := newClingoProgram(seed + i)
			if err != nil {
				t.Fatal(err)
			}
			constructs.add(&seen{tags: c.tags})
			c.write(&text)
			together = append(together, c)
		}
		models := solveByClingo(t, text.String())
		for _, c := range together {
			if err := c.compare(models); err != nil {
				t.Fatalf("seed %d: %v\n%v", c.seed, err, c.scenario)
			}
		}
		if *oracleSeed != 0 {
			break
		}
	}
	t.Log(constructs)
}

// clingoProgram is a program after its transactions.
type clingoProgram struct {
	*run
	seed     uint64
	tags     map[string]bool
	scenario *scenario
}

func newClingoProgram(seed uint64) (*clingoProgram, error) {
	g := newGenerator(seed)
	g.foreign = true
	s := g.scenario()
	s.steps = slices.DeleteFunc(s.steps, func(s step) bool { return s.kind != stepTransact })
	for _, r := range g.derived {
		v := g.whole(r)
		v.name = "clingo_" + r.name
		s.program.views = append(s.program.views, v)
		s.steps = slices.Insert(s.steps, 1, step{
			kind: stepWatch, name: v.name, values: []value.Value{value.OfBool(true)},
		})
	}
	c := &clingoProgram{run: newRun(newSeen()), seed: seed, tags: g.tags, scenario: s}
	at := 0
	err := c.deploy(s.program)
	for ; err == nil && at < len(s.steps); at++ {
		err = c.do(&s.steps[at], s.told)
	}
	if err != nil {
		return nil, fmt.Errorf("seed %d: step %d: %w\n%v", seed, at, err, s)
	}
	return c, nil
}

// name is a relation's in the text that clingo gets.
func (c *clingoProgram) name(id analysis.RelationID) string {
	return fmt.Sprintf("p%d_%s", c.seed, c.program.Relations[id].Name)
}

// write spells the program and its facts for clingo.
func (c *clingoProgram) write(text *strings.Builder) {
	for id, r := range c.program.Relations {
		if r.Derived {
			fmt.Fprintf(text, "#show %s/%d.\n", c.name(analysis.RelationID(id)), len(r.Columns))
			continue
		}
		for _, row := range c.facts[r.Name].Rows() {
			var terms []analysis.Term
			for _, v := range row {
				terms = append(terms, analysis.ConstTerm(v))
			}
			a := analysis.Atom{Relation: analysis.RelationID(id), Terms: terms}
			fmt.Fprintf(text, "%s.\n", c.atom(a))
		}
	}
	for i := range c.program.Rules {
		r := &c.program.Rules[i]
		var body []string
		for _, a := range r.Body.Atoms {
			body = append(body, c.atom(a))
		}
		for _, a := range r.Body.Negations {
			body = append(body, "not "+c.negated(&r.Body, a))
		}
		for _, k := range r.Body.Computations {
			body = append(body, fmt.Sprintf("V%d = %s %s %s",
				k.Out, clingoTerm(k.Args[0]), k.Function.Name, clingoTerm(k.Args[1])))
		}
		for _, k := range r.Body.Comparisons {
			op := [...]string{"=", "!=", "<", "<=", ">", ">="}[k.Op]
			body = append(body, clingoTerm(k.Left)+" "+op+" "+clingoTerm(k.Right))
		}
		fmt.Fprintf(text, "%s :- %s.\n", c.atom(r.Head), strings.Join(body, ", "))
	}
}

func (c *clingoProgram) atom(a analysis.Atom) string {
	terms := make([]string, len(a.Terms))
	for i, t := range a.Terms {
		terms[i] = clingoTerm(t)
	}
	return c.name(a.Relation) + "(" + strings.Join(terms, ", ") + ")"
}

// negated spells an atom under negation: what stands nowhere else is a `_`.
func (c *clingoProgram) negated(b *analysis.Body, a analysis.Atom) string {
	bound := map[int]bool{}
	for _, atom := range b.Atoms {
		for _, t := range atom.Terms {
			bound[t.Var] = true
		}
	}
	for _, k := range b.Computations {
		bound[k.Out] = true
	}
	terms := make([]string, len(a.Terms))
	for i, t := range a.Terms {
		if terms[i] = clingoTerm(t); !t.IsConst() && !bound[t.Var] {
			terms[i] = "_"
		}
	}
	return c.name(a.Relation) + "(" + strings.Join(terms, ", ") + ")"
}

func clingoTerm(t analysis.Term) string {
	if t.IsConst() {
		return clingoValue(t.Const)
	}
	return fmt.Sprintf("V%d", t.Var)
}

// clingoValue is an integer: an int itself, another value by its rank in its domain,
// and null below everything.
func clingoValue(v value.Value) string {
	switch {
	case v.IsNull():
		return "-1000000"
	case v.Kind() == value.Int:
		return fmt.Sprint(v.Int())
	}
	domain := slices.SortedFunc(slices.Values(domains[v.Kind()]), value.Compare)
	return fmt.Sprint(1000000*int(v.Kind()) + slices.Index(domain, v))
}

// solveByClingo returns the atoms of the one model that a stratified program has.
func solveByClingo(t *testing.T, text string) map[string]bool {
	t.Helper()
	clingo := exec.Command("clingo", "--outf=2", "--warn=none", "-")
	clingo.Stdin = strings.NewReader(text)
	var complaint bytes.Buffer
	clingo.Stderr = &complaint
	out, err := clingo.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	var answer struct {
		Result string
		Call   []struct{ Witnesses []struct{ Value []string } }
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Result != "SATISFIABLE" {
		t.Fatalf("clingo: %v %s: %s\n%s", err, answer.Result, complaint.String(), text)
	}
	atoms := map[string]bool{}
	for _, atom := range answer.Call[0].Witnesses[0].Value {
		atoms[atom] = true
	}
	return atoms
}

// compare compares all derived relations with clingo's atoms.
func (c *clingoProgram) compare(atoms map[string]bool) error {
	for i, r := range c.program.Relations {
		if !r.Derived {
			continue
		}
		id := analysis.RelationID(i)
		prefix := c.name(id) + "("
		var want []string
		for atom := range atoms {
			if strings.HasPrefix(atom, prefix) {
				want = append(want, atom)
			}
		}
		slices.Sort(want)
		if got := c.spell(id, c.derived().Rows(id)); !slices.Equal(got, want) {
			return fmt.Errorf("the slow twin has %v, clingo %v", got, want)
		}
		for _, k := range c.keys {
			if k.View() != "clingo_"+r.Name {
				continue
			}
			rows := setOf(c.engine.Rows(k, 0, nil), len(k.Columns(0))).Rows()
			if got := c.spell(id, rows); !slices.Equal(got, want) {
				return fmt.Errorf("the engine has %v, clingo %v", got, want)
			}
		}
	}
	return nil
}

func (c *clingoProgram) spell(id analysis.RelationID, rows [][]value.Value) []string {
	var out []string
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = clingoValue(v)
		}
		out = append(out, c.name(id)+"("+strings.Join(cells, ",")+")")
	}
	slices.Sort(out)
	return out
}
