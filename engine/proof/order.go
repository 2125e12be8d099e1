package proof

import (
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// orderer puts the conditions of a body into an order in which each can be tested.
type orderer struct {
	program  *analysis.Program
	body     *analysis.Body
	known    []bool
	computed []bool // by some computation
	binds    []bool // by an atom or computation, or known from the beginning
	placed   map[Literal]bool
	out      []Literal
}

// orderOf orders a body of which the known variables have a value: what can be
// tested comes at once, then the atom with most columns bound, facts before derived
// rows, and what stands first in the text among equals. Nothing is computed before
// the atoms that do not need it, as the stages of analysis.Body have it.
func orderOf(p *analysis.Program, b *analysis.Body, known []bool) []Literal {
	o := &orderer{
		program: p, body: b, known: make([]bool, len(b.Variables)),
		computed: make([]bool, len(b.Variables)), binds: make([]bool, len(b.Variables)),
		placed: map[Literal]bool{},
	}
	copy(o.known, known)
	copy(o.binds, known)
	for _, c := range b.Computations {
		o.computed[c.Out], o.binds[c.Out] = true, true
	}
	for _, a := range b.Atoms {
		mark(o.binds, a.Terms)
	}
	for before := -1; before < len(o.out); {
		before = len(o.out)
		o.tests(true)
		for i := o.nextAtom(); i >= 0; i = o.nextAtom() {
			o.place(Literal{Atom, i})
			mark(o.known, b.Atoms[i].Terms)
			o.tests(true)
		}
		for i, c := range b.Computations {
			if l := (Literal{Computation, i}); !o.placed[l] && o.has(c.Args) {
				o.place(l)
				o.known[c.Out] = true
				o.tests(false)
			}
		}
	}
	return o.out
}

func mark(set []bool, terms []analysis.Term) {
	for _, t := range terms {
		if !t.IsConst() {
			set[t.Var] = true
		}
	}
}

func (o *orderer) place(l Literal) {
	o.placed[l] = true
	o.out = append(o.out, l)
}

func (o *orderer) has(terms []analysis.Term) bool {
	for _, t := range terms {
		if !t.IsConst() && !o.known[t.Var] {
			return false
		}
	}
	return true
}

// tests places the comparisons, and maybe the negations, that can be tested.
func (o *orderer) tests(negations bool) {
	for i, c := range o.body.Comparisons {
		l := Literal{Comparison, i}
		if !o.placed[l] && o.has([]analysis.Term{c.Left, c.Right}) {
			o.place(l)
		}
	}
	if !negations {
		return
	}
	for i, a := range o.body.Negations {
		l := Literal{Negation, i}
		ready := true
		for _, t := range a.Terms {
			ready = ready && (t.IsConst() || o.known[t.Var] || !o.binds[t.Var])
		}
		if ready && !o.placed[l] {
			o.place(l)
		}
	}
}

// nextAtom returns the atom to match next, or -1 if each needs a computation first.
func (o *orderer) nextAtom() int {
	best, bestScore := -1, 0
	for i, a := range o.body.Atoms {
		if o.placed[Literal{Atom, i}] {
			continue
		}
		bound, waits := 0, false
		for _, t := range a.Terms {
			switch {
			case t.IsConst() || o.known[t.Var]:
				bound++
			case o.computed[t.Var]:
				waits = true
			}
		}
		if waits {
			continue
		}
		score := 4 * min(bound, 1<<10)
		if bound == len(a.Terms) {
			score = 1 << 16
		}
		if !o.program.Relations[a.Relation].Derived {
			score += 2
		}
		if best < 0 || score > bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

// pattern returns an atom's terms under a binding.
func pattern(a analysis.Atom, binding []value.Value) []value.Value {
	out := make([]value.Value, len(a.Terms))
	for i, t := range a.Terms {
		out[i] = evaluate(t, binding)
	}
	return out
}

func evaluate(t analysis.Term, binding []value.Value) value.Value {
	if t.IsConst() {
		return t.Const
	}
	return binding[t.Var]
}

func holds(c analysis.Comparison, binding []value.Value) bool {
	return c.Op.Holds(value.Compare(evaluate(c.Left, binding), evaluate(c.Right, binding)))
}

// compute evaluates a computation under a binding; with a null it is null.
func compute(c analysis.Computation, binding []value.Value) (value.Value, error) {
	args := make([]value.Value, len(c.Args))
	for i, t := range c.Args {
		if args[i] = evaluate(t, binding); args[i].IsNull() {
			return value.OfNull(), nil
		}
	}
	return c.Function.Eval(args)
}

// compareValues orders rows of one width.
func compareValues(a, b []value.Value) int {
	for i := range a {
		if a[i].Kind() == value.Invalid || b[i].Kind() == value.Invalid {
			continue // of a column that may hold anything
		}
		if c := value.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// bound returns a query of a body that takes the variables vars as parameters and
// gives the variables out.
func bound(b *analysis.Body, vars, out []int) *analysis.Query {
	to := make([]int, len(b.Variables))
	for i := range to {
		to[i] = -1
	}
	order := append([]int(nil), vars...)
	for i, v := range vars {
		to[v] = i
	}
	for v := range to {
		if to[v] < 0 {
			to[v] = len(order)
			order = append(order, v)
		}
	}
	term := func(t analysis.Term) analysis.Term {
		if !t.IsConst() {
			t.Var = to[t.Var]
		}
		return t
	}
	terms := func(in []analysis.Term) []analysis.Term {
		out := make([]analysis.Term, len(in))
		for i, t := range in {
			out[i] = term(t)
		}
		return out
	}
	q := &analysis.Query{}
	for _, v := range order {
		q.Body.Variables = append(q.Body.Variables, b.Variables[v])
	}
	for _, v := range vars {
		q.Parameters = append(q.Parameters, columnOf(b.Variables[v]))
	}
	for _, v := range out {
		q.Output = append(q.Output, analysis.Term{Var: to[v]})
		q.Columns = append(q.Columns, columnOf(b.Variables[v]))
	}
	for _, a := range b.Atoms {
		q.Body.Atoms = append(q.Body.Atoms,
			analysis.Atom{Relation: a.Relation, Terms: terms(a.Terms)})
	}
	for _, a := range b.Negations {
		q.Body.Negations = append(q.Body.Negations,
			analysis.Atom{Relation: a.Relation, Terms: terms(a.Terms)})
	}
	for _, c := range b.Comparisons {
		q.Body.Comparisons = append(q.Body.Comparisons,
			analysis.Comparison{Op: c.Op, Left: term(c.Left), Right: term(c.Right)})
	}
	for _, c := range b.Computations {
		q.Body.Computations = append(q.Body.Computations, analysis.Computation{
			Out: to[c.Out], Function: c.Function, Args: terms(c.Args), Pos: c.Pos,
		})
	}
	return q
}

func columnOf(v analysis.Variable) analysis.Column {
	return analysis.Column(v)
}
