package dataflow

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
)

// A pattern whose recursive clauses are right-linear,
//
//	p(X, Z) <- e(X, Y), p(Y, Z)
//
// and hand the columns that are not bound on as they are, would ask for every Y that
// a demanded X reaches, and derive for each of them all that it reaches in turn: the
// square of what is asked. It is factored instead: pairs of a demanded X and a Y that
// it reaches, and from these the rows of just the demanded X.
//
//	m(X, X) <- demand(X)
//	m(X, Y) <- m(X, W), e(W, Y)
//	p(X, Z) <- m(X, Y), b(Y, Z)    for each other clause p(Y, Z) <- b(Y, Z)

// isFactored reports whether a pattern is to be factored.
func (t *transformer) isFactored(p pattern) bool {
	columns := len(t.program.Relations[p.relation].Columns)
	if p.bound == 0 || p.bound.Len() == columns || t.prepared.plain {
		return false
	}
	recursive := 0
	for _, i := range t.prepared.clauses[p.relation] {
		r := &t.program.Rules[i]
		if r.Aggregates != nil {
			return false
		}
		if at, ok := t.recursion(r); !ok {
			return false
		} else if at >= 0 {
			if !isRightLinear(r, at, p.bound) {
				return false
			}
			recursive++
		}
	}
	return recursive > 0
}

// recursion returns which atom of a clause is recursive, or -1, and false if the
// clause is recursive in another way than by one atom of its own relation.
func (t *transformer) recursion(r *analysis.Rule) (int, bool) {
	at := -1
	for i, a := range r.Body.Atoms {
		if t.prepared.components[a.Relation] != t.prepared.components[r.Head.Relation] ||
			!t.program.Relations[a.Relation].Derived {
			continue
		}
		if at >= 0 || a.Relation != r.Head.Relation {
			return 0, false
		}
		at = i
	}
	return at, true
}

// isRightLinear reports whether a clause whose body's atom at is recursive hands the
// columns that are not bound on to its head, and knows the bound ones of that atom
// without it.
func isRightLinear(r *analysis.Rule, at int, bound relation.Columns) bool {
	if len(r.Body.Computations) > 0 {
		return false
	}
	uses := make([]int, len(r.Body.Variables)) // outside of the head and the atom
	use := func(terms []analysis.Term) {
		for _, t := range terms {
			if !t.IsConst() {
				uses[t.Var]++
			}
		}
	}
	known := make([]bool, len(uses))
	for i, a := range r.Body.Atoms {
		if i != at {
			use(a.Terms)
			for _, t := range a.Terms {
				if !t.IsConst() {
					known[t.Var] = true
				}
			}
		}
	}
	for _, a := range r.Body.Negations {
		use(a.Terms)
	}
	for _, c := range r.Body.Comparisons {
		use([]analysis.Term{c.Left, c.Right})
	}
	// Free columns may not be used at all but for being handed on.
	seen := make([]int, len(uses))
	for _, terms := range [][]analysis.Term{r.Head.Terms, r.Body.Atoms[at].Terms} {
		for _, t := range terms {
			if !t.IsConst() {
				seen[t.Var]++
			}
		}
	}
	for c, t := range r.Body.Atoms[at].Terms {
		head := r.Head.Terms[c]
		if bound.Has(c) {
			if !head.IsConst() {
				known[head.Var] = true
			}
			continue
		}
		if t.IsConst() || head.IsConst() || t.Var != head.Var ||
			uses[t.Var] > 0 || seen[t.Var] != 2 {
			return false
		}
	}
	for c, t := range r.Body.Atoms[at].Terms {
		if bound.Has(c) && !t.IsConst() && !known[t.Var] {
			return false
		}
	}
	return true
}

// factored adds the rules of a factored pattern.
func (t *transformer) factored(p pattern, d demanded) error {
	f := factoring{transformer: t, pattern: p}
	f.findSteady()
	width := p.bound.Len() + (p.bound &^ f.steady).Len()
	f.reached = t.newPredicate(demand, width)
	f.reached.of = p.relation
	seed := make([]operand, p.bound.Len())
	for i := range seed {
		seed[i] = operand{register: i}
	}
	t.addRule(&rule{
		clause:    Clause{Rule: t.prepared.clauses[p.relation][0], Goal: -1},
		head:      f.atom(seed, seed),
		body:      []atom{{predicate: d.demand, terms: seed}},
		registers: len(seed),
	})
	for _, i := range t.prepared.clauses[p.relation] {
		if err := f.clause(i, d); err != nil {
			return err
		}
	}
	return nil
}

// factoring is a pattern being factored.
type factoring struct {
	*transformer
	pattern pattern
	// steady are the bound columns that all recursive clauses hand on as they are;
	// what is reached has them once.
	steady  relation.Columns
	reached *predicate
}

func (f *factoring) findSteady() {
	f.steady = f.pattern.bound
	for _, i := range f.prepared.clauses[f.pattern.relation] {
		r := &f.program.Rules[i]
		at, _ := f.recursion(r)
		if at < 0 {
			continue
		}
		for c, t := range r.Body.Atoms[at].Terms {
			if head := r.Head.Terms[c]; t.IsConst() || head.IsConst() || t.Var != head.Var {
				f.steady &^= 1 << c
			}
		}
	}
}

// atom returns what is reached from the first to the second values of the bound
// columns.
func (f *factoring) atom(from, to []operand) atom {
	a := atom{predicate: f.reached, terms: slices.Clone(from)}
	at := 0
	for c := range len(f.program.Relations[f.pattern.relation].Columns) {
		if !f.pattern.bound.Has(c) {
			continue
		}
		if !f.steady.Has(c) {
			a.terms = append(a.terms, to[at])
		}
		at++
	}
	return a
}

// clause adds the rules of one clause.
func (f *factoring) clause(i int, d demanded) error {
	r := &f.program.Rules[i]
	head, err := f.operands(r.Head.Terms)
	if err != nil {
		return err
	}
	body := r.Body
	body.Variables = slices.Clone(body.Variables)
	now := boundTerms(head, f.pattern.bound)
	from, at := slices.Clone(now), 0
	for c := range head {
		if !f.pattern.bound.Has(c) {
			continue
		}
		if !f.steady.Has(c) {
			from[at] = operand{register: len(body.Variables)}
			body.Variables = append(body.Variables, analysis.Variable{
				Type: f.program.Relations[f.pattern.relation].Columns[c].Type,
			})
			head[c] = from[at]
		}
		at++
	}
	c := clause{
		name: Clause{Rule: i, Goal: -1}, demand: f.atom(from, now), body: &body,
		outside: atom{predicate: d.demand, terms: from},
		group:   f.prepared.components[f.pattern.relation],
	}
	recursive, _ := f.recursion(r)
	if recursive < 0 {
		c.head = atom{predicate: d.rows, terms: head}
		return f.transformer.clause(c)
	}
	c.known = body.Atoms[recursive].Terms
	next, err := f.operands(c.known)
	if err != nil {
		return err
	}
	c.head = f.atom(from, boundTerms(next, f.pattern.bound))
	body.Atoms = slices.Delete(slices.Clone(body.Atoms), recursive, recursive+1)
	return f.transformer.clause(c)
}
