package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/value"
)

// row is the text of a random row of a relation.
func (g *generator) row(r *relation) string {
	cells := make([]string, len(r.columns))
	for i, c := range r.columns {
		cells[i] = g.value(c).String()
	}
	return "(" + strings.Join(cells, ", ") + ")"
}

// rows is a statement of plain rows. It remembers what it inserts, so that deletions
// find something.
func (g *generator) rows(written map[string][]string) statement {
	r := pick(g, g.bases)
	there := written[r.name]
	if g.IntN(100) < 20+4*len(there) {
		row := g.row(r)
		if len(there) > 0 && g.IntN(8) > 0 {
			at := g.IntN(len(there))
			row = there[at]
			written[r.name] = slices.Delete(slices.Clone(there), at, at+1)
		}
		return statement{heads: []string{"-" + r.name + row}}
	}
	n := 1
	if g.in(3) {
		n = 2 + g.IntN(3)
		g.tag("bulk insert")
	}
	var rows []string
	for range n {
		row := g.row(r)
		for range 3 { // rather one that is not there
			if slices.Contains(there, row) {
				row = g.row(r)
			}
		}
		rows = append(rows, row)
	}
	written[r.name] = append(there, rows...)
	if n == 1 {
		return statement{heads: []string{"+" + r.name + rows[0]}}
	}
	return statement{heads: []string{"+" + r.name + "[" + strings.Join(rows, ", ") + "]"}}
}

// guarded is a statement with a body.
func (g *generator) guarded(params []param) statement {
	b := &body{g: g}
	for _, p := range params {
		b.vars = append(b.vars, variable{name: "$" + p.name, kind: p.kind})
	}
	from := g.readable(nil, true)
	r := pick(g, g.bases)
	var deleted string
	switch g.IntN(4) {
	case 0:
		g.tag("guarded insert")
		if g.in(2) {
			b.atom(pick(g, from))
		}
		b.negation(pick(g, from))
	case 1:
		g.tag("conditional delete")
		deleted = renameWildcards(b.newAtom(r)) // a head has none
		b.literals = append(b.literals, deleted)
	case 2:
		g.tag("update")
		deleted = renameWildcards(b.newAtom(r)) // a head has none
		b.literals = append(b.literals, deleted)
	default:
		g.tag("guarded insert")
		b.atom(pick(g, from))
	}
	update := deleted != "" && g.in(2)
	if g.in(3) {
		b.atom(pick(g, from))
	}
	if g.in(4) {
		b.negation(pick(g, from))
	}
	if g.in(3) {
		b.comparison()
	}
	if g.in(3) {
		b.computation()
	}
	s := statement{body: b.literals}
	if deleted != "" {
		s.heads = append(s.heads, "-"+deleted)
	}
	if deleted == "" || update {
		terms := make([]string, len(r.columns))
		for i, c := range r.columns {
			terms[i] = b.headTerm(c)
		}
		s.heads = append(s.heads, "+"+r.name+"("+strings.Join(terms, ", ")+")")
	}
	return s
}

// renameWildcards gives each `_` of an atom a name.
func renameWildcards(atom string) string {
	for i := 0; strings.Contains(atom, "_"); i++ {
		atom = strings.Replace(atom, "_", fmt.Sprintf("W%d", i), 1)
	}
	return atom
}

// action makes an action with up to two parameters, all of them used.
func (g *generator) action(n int) action {
	a := action{name: fmt.Sprintf("a%d", n)}
	for i := range g.IntN(3) {
		a.params = append(a.params, param{fmt.Sprintf("q%d", i), g.kind()})
	}
	for range 1 + g.IntN(2) {
		a.statements = append(a.statements, g.guarded(a.params))
	}
	for _, p := range a.params {
		if !strings.Contains(a.String()[strings.Index(a.String(), ":="):], "$"+p.name) {
			s := &a.statements[0]
			c := column{kind: p.kind}
			s.body = append(s.body, fmt.Sprintf("$%s != %v", p.name, g.value(c)))
		}
	}
	g.tag("action")
	return a
}

// stepKind tells what a step does.
type stepKind uint8

const (
	stepTransact stepKind = iota
	stepCall
	stepWatch
	stepUnwatch
	stepQuery
	stepPin
	stepDeploy
)

// step is one thing that happens to a graph. All of them are drawn before the first
// is done, so that a shrinker can leave any out.
type step struct {
	kind       stepKind
	statements []statement
	name       string // of an action or view
	values     []value.Value
	index      int // of the key to unwatch, modulo those that there are; steps to wait
	query      part
	params     []param
	program    *source
}

func (s step) String() string {
	switch s.kind {
	case stepTransact:
		return "transact\n" + transactionText(s.statements)
	case stepCall:
		return fmt.Sprintf("call %s%v", s.name, s.values)
	case stepWatch:
		return fmt.Sprintf("watch %s%v", s.name, s.values)
	case stepUnwatch:
		return fmt.Sprintf("unwatch %d", s.index)
	case stepPin:
		return fmt.Sprintf("in %d steps, query %v %v %v", s.index, s.query, s.params, s.values)
	case stepQuery:
		return fmt.Sprintf("query %v %v %v", s.query, s.params, s.values)
	default:
		return "deploy\n" + s.program.String()
	}
}

func transactionText(statements []statement) string {
	var b strings.Builder
	for _, s := range statements {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// scenario is all that happens to one graph.
type scenario struct {
	program *source
	steps   []step
	told    int // Changes is called after every told-th step
	limits  engine.Limits
}

const stepsPerProgram = 16

// scenario makes a whole scenario.
func (g *generator) scenario() *scenario {
	s := &scenario{program: g.program(), told: 1}
	if g.in(4) {
		s.told = 2 + g.IntN(3)
	}
	if g.in(8) {
		g.tag("limits")
		s.limits.CommitRows = uint64(10 + g.IntN(60))
		if g.in(2) {
			s.limits.GraphRows = uint64(20 + g.IntN(100))
		}
	}
	current := s.program
	written := map[string][]string{}
	first := step{kind: stepTransact}
	for range 10 {
		first.statements = append(first.statements, g.rows(written))
	}
	s.steps = append(s.steps, first)
	for _, v := range s.program.views {
		if g.IntN(6) > 0 {
			s.steps = append(s.steps, g.watchView(v))
		}
	}
	for range stepsPerProgram {
		next := g.step(&current, written)
		s.steps = append(s.steps, next)
		for range 3 {
			if next.kind == stepDeploy { // some views are new, and some keys lost
				s.steps = append(s.steps, g.watch(current))
			}
		}
	}
	return s
}

func (g *generator) step(current **source, written map[string][]string) step {
	switch n := g.IntN(24); {
	case n < 12:
		return g.transact(written)
	case n < 14 && len((*current).actions) > 0:
		a := pick(g, (*current).actions)
		g.tag("action called")
		return step{kind: stepCall, name: a.name, values: g.values(a.params)}
	case n < 17:
		return g.watch(*current)
	case n < 18:
		g.tag("unwatch midway")
		return step{kind: stepUnwatch, index: g.IntN(100)}
	case n < 20:
		q := step{kind: stepQuery}
		for i := range g.IntN(3) {
			q.params = append(q.params, param{fmt.Sprintf("p%d", i), 0})
		}
		q.query = g.part(q.params)
		q.values = g.values(q.params)
		g.tag("query")
		if g.in(3) {
			g.tag("query on a pin")
			q.kind, q.index = stepPin, 1+g.IntN(8)
		}
		return q
	case n < 21:
		g.tag("deploy midway")
		if !g.foreign && g.in(2) {
			*current = g.renew(written)
		} else {
			*current = g.mutate(*current)
		}
		return step{kind: stepDeploy, program: *current}
	default:
		return g.transact(written)
	}
}

func (g *generator) transact(written map[string][]string) step {
	s := step{kind: stepTransact}
	switch g.IntN(12) {
	case 0:
		// The whole is nothing: a row comes and goes, or goes and comes back.
		r := pick(g, g.bases)
		row := g.row(r)
		if there := written[r.name]; len(there) > 0 && g.in(2) {
			row = pick(g, there)
		}
		signs := pick(g, [][]string{{"+", "-"}, {"-", "+"}, {"+", "-", "+"}, {"-", "+", "-"}})
		for _, sign := range signs {
			s.statements = append(s.statements, statement{heads: []string{sign + r.name + row}})
		}
		g.tag("insert and delete in one batch")
	case 1, 2:
		for range 1 + g.IntN(3) {
			if g.in(2) {
				s.statements = append(s.statements, g.rows(written))
			}
			s.statements = append(s.statements, g.guarded(nil))
		}
	default:
		for range 1 + g.IntN(6) {
			s.statements = append(s.statements, g.rows(written))
		}
	}
	return s
}

func (g *generator) values(params []param) []value.Value {
	out := make([]value.Value, len(params))
	for i, p := range params {
		out[i] = pick(g, domains[p.kind])
	}
	return out
}

func (g *generator) watch(s *source) step {
	if len(s.views) == 0 {
		return step{kind: stepUnwatch}
	}
	return g.watchView(pick(g, s.views))
}

func (g *generator) watchView(v view) step {
	return step{kind: stepWatch, name: v.name, values: g.values(v.params)}
}

// mutate changes some rules, views or relations of a program.
func (g *generator) mutate(s *source) *source {
	next := s.clone()
	for range 1 + g.IntN(2) {
		switch g.IntN(5) {
		case 0, 1:
			r := pick(g, g.derived)
			next.clauses = slices.DeleteFunc(next.clauses, func(c clause) bool {
				return strings.HasPrefix(c.head, r.name+"(")
			})
			next.clauses = append(next.clauses, g.clauses(r)...)
		case 2:
			next.views = append(next.views, g.view())
		case 3:
			if len(next.views) > 1 {
				at := g.IntN(len(next.views))
				next.views = slices.Delete(next.views, at, at+1)
			}
		case 4:
			g.Shuffle(len(next.schemas), func(i, j int) {
				next.schemas[i], next.schemas[j] = next.schemas[j], next.schemas[i]
			})
			g.Shuffle(len(next.clauses), func(i, j int) {
				next.clauses[i], next.clauses[j] = next.clauses[j], next.clauses[i]
			})
		}
	}
	return next
}

// renew makes a new program over the base relations, one of which changes.
func (g *generator) renew(written map[string][]string) *source {
	g.bases = slices.Clone(g.bases)
	at := 1 + g.IntN(len(g.bases)-1)
	r := *g.bases[at]
	r.columns = slices.Clone(r.columns)
	g.bases[at] = &r
	renamed := g.in(4)
	if renamed {
		g.tag("relation is renamed")
		g.renamed++
		r.was, r.name = r.name, fmt.Sprintf("n%d", g.renamed)
		written[r.name] = written[r.was]
		delete(written, r.was)
	}
	change := g.IntN(4)
	if renamed {
		change = g.IntN(8) // more often with its facts
	}
	switch change {
	case 0:
		g.tag("relation gets a column")
		r.columns = append(r.columns, column{g.kind(), true})
		delete(written, r.name)
	case 1:
		g.tag("column gets nullable")
		r.columns[g.IntN(len(r.columns))].nullable = true
	case 2:
		g.tag("columns change")
		r.columns = g.columns(1 + g.IntN(2))
		delete(written, r.name)
	case 3:
		g.tag("relation is dropped")
		g.bases = slices.Delete(g.bases, at, at+1)
		delete(written, r.name) // another of this name may come, with other columns
		if len(g.bases) == 1 {
			g.bases = append(g.bases, &relation{name: "b9", columns: g.columns(2)})
		}
	}
	g.derived, g.views = nil, 0
	return g.rules()
}
