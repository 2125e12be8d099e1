package proof

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/value"
)

// Proof says why a query has its rows. Nodes refer to each other by number, and
// never in a circle.
type Proof struct {
	Query   string
	Columns []analysis.Column
	Rows    int   // that the query has
	Roots   []int // the nodes of the rows that are proved
	Nodes   []Node
	Cut     Cut
}

// Node is a row that holds, and why. A row has one node, however often it is needed.
type Node struct {
	Row  Row
	Fact bool // it was written; nothing else is filled in
	Cut  bool // a limit left out why
	// Clause is the rule that gives the row, or the query.
	Clause Clause
	Match  // of the clause's body; of an aggregating one, nothing
	// Matches is how many matches of its body an aggregating clause takes into account.
	Matches int
	// AtLeast tells that there are more matches than were counted.
	AtLeast bool
	Shown   []Match // the first of Matches
}

// Match is a match of a body. Values has one value for each variable of the body, of
// Kind Invalid where a negation has `_`.
type Match struct {
	Values   []value.Value
	Bindings []Binding // of the named variables
	Because  []Reason
}

// Reason is a condition of a body that holds.
type Reason struct {
	Literal
	Text string
	Node int // of the row that an atom matches; -1 for other conditions
}

// instancesMax bounds the matches of a body among which the best is chosen.
const instancesMax = 1000

// prover makes a proof.
type prover struct {
	model   Model
	program *analysis.Program
	limits  Limits
	trace   Trace
	proof   *Proof
	ids     map[string]int
	rows    []analysis.RelationID // of the nodes; -1 for a query
	ages    []dataflow.Age
	queue   []int // nodes without a reason
	bytes   int
	failed  error
}

// Why proves the first rows of a query, in its order, as many as the limits let. A
// query without rows has a proof without roots. Its errors are those of the model;
// a budget that is spent after the rows are known makes a cut.
func Why(m Model, q *analysis.Query, parameters []value.Value, limits Limits) (*Proof, error) {
	p := &prover{
		model: m, program: m.Program(), limits: limits.withDefaults(), ids: map[string]int{},
		proof: &Proof{Query: q.Text, Columns: q.Columns},
	}
	rows, count, err := m.Ask(p.program, q, parameters, p.limits.Rows)
	if err != nil {
		return nil, err
	}
	if p.proof.Rows = count; len(rows) == 0 {
		return p.proof, nil
	}
	vars := make([]int, len(q.Parameters))
	for i := range vars {
		vars[i] = i
	}
	for _, t := range q.Output {
		if !t.IsConst() && !slices.Contains(vars, t.Var) {
			vars = append(vars, t.Var)
		}
	}
	bindings := make([][]value.Value, len(rows))
	keys := make([][]value.Value, len(rows))
	for i, row := range rows {
		bindings[i] = make([]value.Value, len(q.Body.Variables))
		copy(bindings[i], parameters)
		for c, t := range q.Output {
			if !t.IsConst() {
				bindings[i][t.Var] = row[c]
			}
		}
		for _, v := range vars {
			keys[i] = append(keys[i], bindings[i][v])
		}
	}
	if p.trace, err = m.Trace(p.keyed(&q.Body, vars), keys); err != nil {
		return nil, err
	}
	for i, row := range rows {
		p.root(q, row, bindings[i])
	}
	for len(p.queue) > 0 {
		at := p.queue[0]
		p.queue = p.queue[1:]
		p.expand(at)
	}
	if err := p.trace.Err(); err != nil && !errors.Is(err, dataflow.ErrBudget) {
		return nil, err
	}
	if p.failed != nil {
		return nil, p.failed
	}
	return p.proof, nil
}

// keyed is bound for variables that may be computed: those are compared instead.
func (p *prover) keyed(b *analysis.Body, vars []int) *analysis.Query {
	body := *b
	body.Comparisons = slices.Clone(b.Comparisons)
	body.Variables = slices.Clone(b.Variables)
	given := slices.Clone(vars)
	for i, v := range vars {
		if isComputed(b, v) {
			given[i] = len(body.Variables)
			body.Variables = append(body.Variables, b.Variables[v])
			body.Comparisons = append(body.Comparisons, analysis.Comparison{
				Op: analysis.Eq, Left: analysis.Term{Var: v}, Right: analysis.Term{Var: given[i]},
			})
		}
	}
	return bound(&body, given, nil)
}

func isComputed(b *analysis.Body, v int) bool {
	return slices.ContainsFunc(b.Computations, func(c analysis.Computation) bool {
		return c.Out == v
	})
}

// root adds the node of a row of the query.
func (p *prover) root(q *analysis.Query, row, binding []value.Value) {
	at, ok := p.add(-1, row, dataflow.Age{Component: 1<<63 - 1})
	if !ok {
		return
	}
	p.proof.Roots = append(p.proof.Roots, at)
	p.proof.Nodes[at].Clause = Clause{Rule: -1, Text: q.Text}
	found, _ := p.best(&q.Body, binding, p.ages[at])
	p.give(at, &q.Body, found)
}

// add returns the node of a row, and makes it if there is none and the limits allow.
func (p *prover) add(id analysis.RelationID, row []value.Value, age dataflow.Age) (int, bool) {
	key := ""
	if id >= 0 {
		key = spell(id, row)
		if at, ok := p.ids[key]; ok {
			return at, true
		}
	}
	p.bytes += size(row)
	switch {
	case len(p.proof.Nodes) >= p.limits.Nodes:
		p.cut(CutNodes)
		return 0, false
	case p.bytes > bytesMax && len(p.proof.Nodes) > 0:
		p.cut(CutBytes)
		return 0, false
	}
	at := len(p.proof.Nodes)
	n := Node{Row: Row{Values: row}}
	if id >= 0 {
		p.ids[key] = at
		r := &p.program.Relations[id]
		n.Row.Relation, n.Fact = r.Name, !r.Derived
	}
	p.proof.Nodes = append(p.proof.Nodes, n)
	p.rows, p.ages = append(p.rows, id), append(p.ages, age)
	if id >= 0 && !n.Fact {
		p.queue = append(p.queue, at)
	}
	return at, true
}

func (p *prover) cut(c Cut) { p.proof.Cut = cmp.Or(p.proof.Cut, c) }

// expand says why a derived row holds.
func (p *prover) expand(at int) {
	id, row := p.rows[at], p.proof.Nodes[at].Row.Values
	var best *instance
	rule := -1
	for i := range p.program.Rules {
		r := &p.program.Rules[i]
		if r.Head.Relation != id {
			continue
		}
		binding, ok := unify(r, row)
		if !ok {
			continue
		}
		if r.Aggregates != nil {
			if p.gives(i, row) && p.aggregated(at, i, binding) {
				return
			}
			continue
		}
		found, ok := p.best(&r.Body, binding, p.ages[at])
		if ok && (best == nil || found.age.Compare(best.age) < 0) {
			best, rule = found, i
		}
	}
	if best == nil {
		p.give(at, nil, nil)
		return
	}
	p.proof.Nodes[at].Clause = clauseOf(p.program, rule)
	p.give(at, &p.program.Rules[rule].Body, best)
}

// give makes a match the reason of a node. Without one a limit was reached.
func (p *prover) give(at int, b *analysis.Body, found *instance) {
	if found == nil {
		if p.trace.Err() == nil {
			// Our own mistake, but none that the graph's loop should end for.
			p.failed = fmt.Errorf("proof: %v was derived and has no derivation",
				p.proof.Nodes[at].Row)
		}
		p.cut(CutSteps)
		p.proof.Nodes[at].Cut = true
		return
	}
	match, ok := p.match(b, found)
	if !ok {
		p.proof.Nodes[at].Cut = true
		return
	}
	p.proof.Nodes[at].Match = match
}

// match turns an instance into a match, with nodes for its rows. It reports false if
// a limit does not allow for them; then it adds none.
func (p *prover) match(b *analysis.Body, found *instance) (Match, bool) {
	m := Match{Values: found.binding, Bindings: named(b, found.binding)}
	p.bytes += size(found.binding)
	nodes := len(p.proof.Nodes)
	for _, l := range textOrder(b) {
		r := Reason{Literal: l, Node: -1, Text: literalText(p.program, b, l, found.binding)}
		if l.Kind == Atom {
			var ok bool
			a := b.Atoms[l.Index]
			r.Node, ok = p.add(a.Relation, found.rows[l.Index], found.ages[l.Index])
			if !ok {
				p.takeBack(nodes)
				return m, false
			}
		}
		m.Because = append(m.Because, r)
	}
	return m, true
}

// takeBack removes the newest nodes until there are so many.
func (p *prover) takeBack(nodes int) {
	for key, at := range p.ids {
		if at >= nodes {
			delete(p.ids, key)
		}
	}
	p.queue = slices.DeleteFunc(p.queue, func(at int) bool { return at >= nodes })
	p.proof.Nodes = p.proof.Nodes[:nodes]
	p.rows, p.ages = p.rows[:nodes], p.ages[:nodes]
}

// unify binds the variables of a rule's head to a row; it reports false if the head
// never gives it.
func unify(r *analysis.Rule, row []value.Value) ([]value.Value, bool) {
	binding := make([]value.Value, len(r.Body.Variables))
	for c, t := range r.Head.Terms {
		switch v := row[c]; {
		case v.Kind() == value.Invalid, isAggregated(r, c):
		case t.IsConst():
			if t.Const != v {
				return nil, false
			}
		case binding[t.Var].Kind() == value.Invalid:
			binding[t.Var] = v
		case binding[t.Var] != v:
			return nil, false
		}
	}
	return binding, true
}

func isAggregated(r *analysis.Rule, column int) bool {
	return r.Aggregates != nil && r.Aggregates[column].Kind != analysis.NoAggregate
}
