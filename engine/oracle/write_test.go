package oracle

import (
	"fmt"
	"slices"
	"strings"

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
	stepDeploy
)

// step is one thing that happens to a graph. All of them are drawn before the first
// is done, so that a shrinker can leave any out.
type step struct {
	kind       stepKind
	statements []statement
	name       string // of an action or view
	values     []value.Value
	index      int // of the key to unwatch, modulo those that there are
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
	told    int // Changes is called after every told-th commit
}

const stepsPerProgram = 16

// scenario makes a whole scenario.
func (g *generator) scenario() *scenario {
	s := &scenario{program: g.program(), told: 1}
	if g.in(4) {
		s.told = 2 + g.IntN(3)
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
		s.steps = append(s.steps, g.step(&current, written))
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
	case n < 18:
		return g.watch(*current)
	case n < 19:
		g.tag("unwatch midway")
		return step{kind: stepUnwatch, index: g.IntN(100)}
	case n < 21:
		q := step{kind: stepQuery}
		for i := range g.IntN(3) {
			q.params = append(q.params, param{fmt.Sprintf("p%d", i), 0})
		}
		q.query = g.part(q.params)
		q.values = g.values(q.params)
		g.tag("query")
		return q
	case n < 22:
		*current = g.mutate(*current)
		g.tag("deploy midway")
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
			if g.in(3) {
				s.statements = append(s.statements, g.rows(written))
				continue
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
