package dataflow

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/value"
)

// programs makes random programs over a few small ints and null.
type programs struct {
	*rand.Rand
	program   *analysis.Program
	functions []*builtin.Function
	stratum   []int // of the relations
}

func variable(name string) analysis.Variable {
	return analysis.Variable{Name: name, Type: value.Int, Nullable: true}
}

func testFunctions() []*builtin.Function {
	mix := func(args []value.Value) (value.Value, error) {
		return value.OfInt((3*args[0].Int() + args[1].Int() + 1) % randomDomain), nil
	}
	divide := func(args []value.Value) (value.Value, error) {
		if args[1].Int() == 0 {
			return value.Value{}, &builtin.Error{Code: builtin.DivisionByZero}
		}
		return value.OfInt(args[0].Int() / args[1].Int()), nil
	}
	odd := func(args []value.Value) (value.Value, error) {
		if args[0].Int()%2 == 0 {
			return value.OfNull(), nil
		}
		return args[0], nil
	}
	two := []value.Kind{value.Int, value.Int}
	return []*builtin.Function{
		{Name: "mix", Params: two, Result: value.Int, Eval: mix},
		{Name: "divide", Params: two, Result: value.Int, Eval: divide},
		{Name: "odd", Params: two[:1], Result: value.Int, Nullable: true, Eval: odd},
	}
}

func (g *programs) value() value.Value {
	if g.IntN(12) == 0 {
		return value.OfNull()
	}
	return value.OfInt(int64(g.IntN(randomDomain)))
}

func (g *programs) row(arity int) []value.Value {
	row := make([]value.Value, arity)
	for i := range row {
		row[i] = g.value()
	}
	return row
}

func (g *programs) columns(n int) []analysis.Column {
	out := make([]analysis.Column, n)
	for i := range out {
		out[i] = analysis.Column{Name: fmt.Sprint("c", i), Type: value.Int, Nullable: true}
	}
	return out
}

func (g *programs) make() []*analysis.Query {
	g.program, g.functions = &analysis.Program{}, testFunctions()
	for i := range 3 {
		g.relation(fmt.Sprint("b", i), false, 0)
	}
	for i := range 1 + g.IntN(5) {
		g.relation(fmt.Sprint("d", i), true, 1+g.IntN(3))
	}
	for id, r := range g.program.Relations {
		if !r.Derived {
			continue
		}
		for range 1 + g.IntN(3) {
			rule := g.rule(analysis.RelationID(id), len(r.Columns))
			g.program.Rules = append(g.program.Rules, rule)
		}
	}
	var goals []*analysis.Query
	for range 1 + g.IntN(3) {
		q := &analysis.Query{Parameters: g.columns(g.IntN(3))}
		for range q.Parameters {
			q.Body.Variables = append(q.Body.Variables, variable("P"))
		}
		g.body(&q.Body, 9, len(q.Parameters))
		for range 1 + g.IntN(3) {
			q.Output = append(q.Output, g.bound(&q.Body))
		}
		if g.IntN(6) == 0 {
			q.Limit, q.Offset = 1+g.IntN(3), g.IntN(3)
			q.Order = []analysis.Order{{Column: g.IntN(len(q.Output)), Descending: g.IntN(2) == 0}}
		}
		goals = append(goals, q)
	}
	return goals
}

// rule makes a clause of a relation; now and then one that aggregates.
func (g *programs) rule(id analysis.RelationID, columns int) analysis.Rule {
	r := analysis.Rule{Head: analysis.Atom{Relation: id}}
	aggregates := g.IntN(5) == 0
	stratum := g.stratum[id]
	if columns > 1 && g.IntN(4) == 0 {
		g.rightLinear(&r, stratum)
		return r
	}
	if aggregates {
		stratum--
	}
	g.body(&r.Body, stratum, 0)
	for range columns {
		r.Head.Terms = append(r.Head.Terms, g.bound(&r.Body))
	}
	if !aggregates {
		return r
	}
	r.Aggregates = make([]analysis.Aggregate, columns)
	for {
		c := g.IntN(columns)
		kinds := []analysis.AggregateKind{
			analysis.Count, analysis.CountDistinct, analysis.Sum, analysis.Min, analysis.Max,
		}
		r.Aggregates[c] = analysis.Aggregate{
			Kind: kinds[g.IntN(len(kinds))], Arg: g.bound(&r.Body),
		}
		if g.IntN(4) == 0 {
			break
		}
		if g.IntN(2) == 0 {
			clear(r.Aggregates)
			r.Aggregates[c] = analysis.Aggregate{
				Kind: analysis.TopK + analysis.AggregateKind(g.IntN(3)), Arg: g.bound(&r.Body),
				K: 1 + int64(g.IntN(2)), Threshold: value.OfInt(int64(g.IntN(randomDomain))),
				Descending: g.IntN(2) == 0,
			}
			break
		}
	}
	return r
}

// rightLinear makes a recursive clause that hands some of the head's columns on.
func (g *programs) rightLinear(r *analysis.Rule, stratum int) {
	b := &r.Body
	for range 4 {
		b.Variables = append(b.Variables, variable("X"))
	}
	for range 1 + g.IntN(2) {
		g.atom(b, max(stratum-1, 0))
	}
	if g.IntN(3) == 0 {
		g.negation(b, max(stratum-1, 0))
	}
	a := analysis.Atom{Relation: r.Head.Relation}
	for range g.program.Relations[r.Head.Relation].Columns {
		if g.IntN(2) == 0 {
			z := analysis.Term{Var: len(b.Variables)}
			b.Variables = append(b.Variables, variable("X"))
			r.Head.Terms, a.Terms = append(r.Head.Terms, z), append(a.Terms, z)
		} else {
			r.Head.Terms, a.Terms = append(r.Head.Terms, g.bound(b)), append(a.Terms, g.bound(b))
		}
	}
	b.Atoms = append(b.Atoms, a)
}

func (g *programs) relation(name string, isDerived bool, stratum int) {
	columns := g.columns(1 + g.IntN(2) + g.IntN(5)/4)
	g.program.Relations = append(g.program.Relations,
		analysis.Relation{Name: name, Columns: columns, Derived: isDerived})
	g.stratum = append(g.stratum, stratum)
}

// below returns a relation of at most the given stratum.
func (g *programs) below(stratum int) analysis.RelationID {
	for {
		if id := g.IntN(len(g.stratum)); g.stratum[id] <= stratum {
			return analysis.RelationID(id)
		}
	}
}

// body fills a body whose first variables may be parameters.
func (g *programs) body(b *analysis.Body, stratum, parameters int) {
	for range 4 {
		b.Variables = append(b.Variables, variable("X"))
	}
	for range 1 + g.IntN(3) {
		g.atom(b, stratum)
	}
	for g.IntN(5) < 2 {
		f := g.functions[g.IntN(len(g.functions))]
		c := analysis.Computation{Out: len(b.Variables), Function: f}
		for range f.Params {
			c.Args = append(c.Args, g.bound(b))
		}
		b.Variables = append(b.Variables, variable("F"))
		b.Computations = append(b.Computations, c)
		if g.IntN(2) == 0 {
			g.atom(b, stratum)
			a := b.Atoms[len(b.Atoms)-1]
			a.Terms[g.IntN(len(a.Terms))] = analysis.Term{Var: c.Out}
		}
	}
	for g.IntN(2) == 0 {
		g.negation(b, max(stratum-1, 0))
	}
	for g.IntN(3) == 0 {
		b.Comparisons = append(b.Comparisons, analysis.Comparison{
			Op: analysis.Operator(g.IntN(int(analysis.Ge) + 1)), Left: g.bound(b), Right: g.bound(b),
		})
	}
}

func (g *programs) atom(b *analysis.Body, stratum int) {
	a := analysis.Atom{Relation: g.below(stratum)}
	for range g.program.Relations[a.Relation].Columns {
		switch n := g.IntN(9); {
		case n == 0:
			a.Terms = append(a.Terms, analysis.ConstTerm(g.value()))
		case n == 1:
			a.Terms = append(a.Terms, analysis.Term{Var: len(b.Variables)})
			b.Variables = append(b.Variables, variable(""))
		default:
			for {
				v := g.IntN(len(b.Variables))
				if name := b.Variables[v].Name; name == "P" || name == "X" {
					a.Terms = append(a.Terms, analysis.Term{Var: v})
					break
				}
			}
		}
	}
	b.Atoms = append(b.Atoms, a)
}

func (g *programs) negation(b *analysis.Body, stratum int) {
	a := analysis.Atom{Relation: g.below(stratum)}
	var fresh []analysis.Variable
	for range g.program.Relations[a.Relation].Columns {
		if g.IntN(4) == 0 {
			a.Terms = append(a.Terms, analysis.Term{Var: len(b.Variables) + len(fresh)})
			fresh = append(fresh, variable(""))
			continue
		}
		a.Terms = append(a.Terms, g.bound(b))
	}
	b.Variables = append(b.Variables, fresh...)
	b.Negations = append(b.Negations, a)
}

// bound returns a constant now and then, and else a variable that has a value.
func (g *programs) bound(b *analysis.Body) analysis.Term {
	var known []analysis.Term
	for v := range b.Variables {
		if b.Variables[v].Name == "P" {
			known = append(known, analysis.Term{Var: v})
		}
	}
	for _, a := range b.Atoms {
		for _, t := range a.Terms {
			if !t.IsConst() && b.Variables[t.Var].Name != "" {
				known = append(known, t)
			}
		}
	}
	for _, c := range b.Computations {
		known = append(known, analysis.Term{Var: c.Out}, analysis.Term{Var: c.Out})
	}
	if len(known) == 0 || g.IntN(8) == 0 {
		return analysis.ConstTerm(g.value())
	}
	return known[g.IntN(len(known))]
}

func (r *run) spell() string {
	var out strings.Builder
	for i := range r.program.Rules {
		rule := &r.program.Rules[i]
		fmt.Fprintf(&out, "%s %v <- %s\n", r.spellAtom(rule.Head), rule.Aggregates,
			r.spellBody(&rule.Body))
	}
	for i, q := range r.goals {
		fmt.Fprintf(&out, "goal %d with %d parameters: %s := %s order by %v limit %d offset %d\n",
			i, len(q.Parameters), spellTerms(q.Output), r.spellBody(&q.Body), q.Order, q.Limit,
			q.Offset)
	}
	return out.String()
}

func spellTerm(t analysis.Term) string {
	if t.IsConst() {
		return t.Const.String()
	}
	return fmt.Sprint("V", t.Var)
}

func spellTerms(terms []analysis.Term) string {
	var out []string
	for _, t := range terms {
		out = append(out, spellTerm(t))
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func (r *run) spellAtom(a analysis.Atom) string {
	return r.program.Relations[a.Relation].Name + spellTerms(a.Terms)
}

func (r *run) spellBody(b *analysis.Body) string {
	var out []string
	for _, a := range b.Atoms {
		out = append(out, r.spellAtom(a))
	}
	for _, c := range b.Computations {
		out = append(out, fmt.Sprintf("V%d = %s%s", c.Out, c.Function.Name, spellTerms(c.Args)))
	}
	for _, a := range b.Negations {
		out = append(out, "!"+r.spellAtom(a))
	}
	for _, c := range b.Comparisons {
		op := []string{"=", "!=", "<", "<=", ">", ">="}[c.Op]
		out = append(out, spellTerm(c.Left)+" "+op+" "+spellTerm(c.Right))
	}
	return strings.Join(out, ", ")
}
