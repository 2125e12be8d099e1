package proof

import (
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/value"
)

// instance is a match of a body, with the rows of its atoms.
type instance struct {
	binding []value.Value
	rows    [][]value.Value
	ages    []dataflow.Age
	age     dataflow.Age // the greatest of ages
}

// search enumerates the matches of a body among what a trace knows.
type search struct {
	trace   Trace
	body    *analysis.Body
	order   []Literal
	limit   dataflow.Age // of rows: older ones only
	binding []value.Value
	fixed   []bool // bound from the beginning
	rows    [][]value.Value
	ages    []dataflow.Age
	found   func() bool // returns false to end the search
}

func (p *prover) newSearch(b *analysis.Body, binding []value.Value, limit dataflow.Age) *search {
	s := &search{
		trace: p.trace, body: b, limit: limit, binding: slices.Clone(binding),
		fixed: make([]bool, len(binding)),
		rows:  make([][]value.Value, len(b.Atoms)), ages: make([]dataflow.Age, len(b.Atoms)),
	}
	known := make([]bool, len(binding))
	for v, x := range binding {
		s.fixed[v] = x.Kind() != value.Invalid
		known[v] = s.fixed[v] && !isComputed(b, v)
	}
	s.order = orderOf(p.program, b, known)
	return s
}

// run goes on with the condition at a place of the order. It returns false when the
// search is over.
func (s *search) run(at int) bool {
	if s.trace.Err() != nil {
		return false
	}
	if at == len(s.order) {
		return s.found()
	}
	switch l := s.order[at]; l.Kind {
	case Atom:
		return s.atom(at, l.Index)
	case Negation:
		a, none := s.body.Negations[l.Index], true
		s.trace.Match(a.Relation, pattern(a, s.binding),
			func(row []value.Value, _ dataflow.Age) bool {
				none = !agree(a.Terms, row)
				return none
			})
		return !none || s.run(at+1)
	case Comparison:
		return !holds(s.body.Comparisons[l.Index], s.binding) || s.run(at+1)
	default:
		c := s.body.Computations[l.Index]
		v, err := compute(c, s.binding)
		if err != nil || s.fixed[c.Out] && s.binding[c.Out] != v {
			return true
		}
		s.binding[c.Out] = v
		more := s.run(at + 1)
		if !s.fixed[c.Out] {
			s.binding[c.Out] = value.Value{}
		}
		return more
	}
}

// agree reports whether a row has one value wherever the terms have one variable.
func agree(terms []analysis.Term, row []value.Value) bool {
	for i, t := range terms {
		for k := range i {
			if !t.IsConst() && terms[k].Var == t.Var && row[i] != row[k] {
				return false
			}
		}
	}
	return true
}

// atom goes on with each row that an atom matches.
func (s *search) atom(at, index int) bool {
	a := s.body.Atoms[index]
	var fresh []int // columns that bind a variable
	for c, t := range a.Terms {
		if !t.IsConst() && s.binding[t.Var].Kind() == value.Invalid {
			fresh = append(fresh, c)
		}
	}
	more := true
	found := func(row []value.Value, age dataflow.Age) bool {
		if age.Compare(s.limit) >= 0 || !agree(a.Terms, row) {
			return true
		}
		for _, c := range fresh {
			s.binding[a.Terms[c].Var] = row[c]
		}
		s.rows[index], s.ages[index] = row, age
		more = s.run(at + 1)
		for _, c := range fresh {
			s.binding[a.Terms[c].Var] = value.Value{}
		}
		return more
	}
	s.trace.Match(a.Relation, pattern(a, s.binding), found)
	return more
}

// instance returns the present match.
func (s *search) instance() *instance {
	i := &instance{
		binding: slices.Clone(s.binding), rows: slices.Clone(s.rows), ages: slices.Clone(s.ages),
		age: dataflow.Age{Component: -1},
	}
	for _, a := range s.ages {
		if a.Compare(i.age) > 0 {
			i.age = a
		}
	}
	return i
}

// best returns the match of a body that extends a binding, from rows older than
// limit: that of the oldest rows, and among equals the one with the smallest values.
// Of very many matches it looks at some only.
func (p *prover) best(b *analysis.Body, binding []value.Value, limit dataflow.Age) (
	*instance, bool,
) {
	var best *instance
	seen := 0
	s := p.newSearch(b, binding, limit)
	s.found = func() bool {
		i := s.instance()
		if best == nil || i.age.Compare(best.age) < 0 ||
			i.age == best.age && compareValues(i.binding, best.binding) < 0 {
			best = i
		}
		seen++
		return seen < instancesMax
	}
	s.run(0)
	return best, best != nil
}

// gives reports whether an aggregating rule gives a row, and not only another rule of
// its relation.
func (p *prover) gives(rule int, row []value.Value) bool {
	id := p.program.Rules[rule].Head.Relation
	rules := 0
	for i := range p.program.Rules {
		if p.program.Rules[i].Head.Relation == id {
			rules++
		}
	}
	if rules == 1 {
		return true
	}
	_, count, err := askClause(p.model, p.program, rule, row, 1)
	return err == nil && count > 0
}

// askClause asks for the rows that agree with a pattern and that one rule of their
// relation gives.
func askClause(m Model, p *analysis.Program, rule int, row []value.Value, most int) (
	[][]value.Value, int, error,
) {
	r := p.Rules[rule]
	alone := analysis.Program{
		Relations: append(slices.Clip(p.Relations), p.Relations[r.Head.Relation]),
		Rules:     slices.Clip(p.Rules),
	}
	r.Head.Relation = analysis.RelationID(len(p.Relations))
	alone.Relations[r.Head.Relation].Name = "" // no relation of the program
	alone.Rules = append(alone.Rules, r)
	return m.Ask(&alone, patternQuery(r.Head.Relation, &alone, row), nil, most)
}

// patternQuery asks for the whole rows of a relation that agree with a pattern.
func patternQuery(id analysis.RelationID, p *analysis.Program, row []value.Value) *analysis.Query {
	q := &analysis.Query{}
	atom := analysis.Atom{Relation: id}
	for c, v := range row {
		column := p.Relations[id].Columns[c]
		t := analysis.ConstTerm(v)
		if v.Kind() == value.Invalid {
			t = analysis.Term{Var: len(q.Body.Variables)}
			q.Body.Variables = append(q.Body.Variables, analysis.Variable(column))
		}
		atom.Terms = append(atom.Terms, t)
		q.Output, q.Columns = append(q.Output, t), append(q.Columns, column)
	}
	q.Body.Atoms = []analysis.Atom{atom}
	return q
}

// mayChoose reports whether an aggregate with several results takes a value into
// account. Matches with others may not even have been derived.
func mayChoose(a *analysis.Aggregate, v value.Value) bool {
	switch {
	case v.IsNull():
		return false
	case a.Kind == analysis.TopK:
		return true
	case a.Descending:
		return value.Compare(v, a.Threshold) >= 0
	}
	return value.Compare(v, a.Threshold) <= 0
}

// aggregated makes the matches of an aggregating rule the reason of a node: first
// those that have the aggregated value, then those with the smallest values. It
// reports false if there are none.
func (p *prover) aggregated(at, rule int, binding []value.Value) bool {
	r, row := &p.program.Rules[rule], p.proof.Nodes[at].Row.Values
	type ranked struct {
		*instance
		other bool // than the aggregated value
	}
	compare := func(a, b ranked) int {
		switch {
		case a.other == b.other:
			return compareValues(a.binding, b.binding)
		case a.other:
			return 1
		}
		return -1
	}
	var shown []ranked
	matches := 0
	s := p.newSearch(&r.Body, binding, p.ages[at])
	s.found = func() bool {
		i := ranked{instance: s.instance()}
		for c := range r.Aggregates {
			a := &r.Aggregates[c]
			if a.Kind < analysis.Min {
				continue
			}
			v := evaluate(a.Arg, i.binding)
			if a.Kind >= analysis.TopK && !mayChoose(a, v) {
				return true
			}
			i.other = i.other || v != row[c]
		}
		matches++
		if len(shown) < p.limits.Matches || compare(i, shown[len(shown)-1]) < 0 {
			place, _ := slices.BinarySearchFunc(shown, i, compare)
			shown = slices.Insert(shown, place, i)
			shown = shown[:min(len(shown), p.limits.Matches)]
		}
		return true
	}
	s.run(0)
	if matches == 0 {
		return false
	}
	p.proof.Nodes[at].Clause = clauseOf(p.program, rule)
	p.proof.Nodes[at].Matches = matches
	if p.trace.Err() != nil {
		p.proof.Nodes[at].AtLeast = true
		p.cut(CutSteps)
	}
	for _, i := range shown {
		m, ok := p.match(&r.Body, i.instance)
		if !ok {
			p.proof.Nodes[at].Cut = true
			break
		}
		p.proof.Nodes[at].Shown = append(p.proof.Nodes[at].Shown, m)
	}
	return true
}
