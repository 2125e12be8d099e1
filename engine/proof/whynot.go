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

// Absence says why a query has no row. Absent[0] is the query; the others are
// patterns of derived relations that no row agrees with, and refer to each other by
// number, maybe in a circle: a row that would have to hold itself up does not hold.
type Absence struct {
	Query  string
	Rows   int // that the query has after all; then there is nothing to explain
	Beyond int // rows that it would have without its limit and offset
	Absent []Absent
	Cut    Cut
}

// Absent is what no row agrees with, and why each rule that could give one does not.
type Absent struct {
	Row      Row
	Failures []Failure // of the rules of the relation in order, or of the query alone
	Cut      bool      // a limit left out the failures
}

// FailureKind says what is wrong with a rule.
type FailureKind uint8

// The kinds of failures.
const (
	FailHead       FailureKind = iota // the head never gives such a row
	FailCondition                     // a condition of the body
	FailComputed                      // the body computes another value than the head needs
	FailAggregate                     // the aggregate gives other values
	FailOverflow                      // the aggregate gives none: it is too large
	FailNoneChosen                    // the aggregate chooses no value
)

// Failure is the first condition of a rule that no match of those before it meets.
type Failure struct {
	Clause Clause
	Kind   FailureKind
	// Literal is the condition, with FailCondition, or the computation, with FailComputed.
	Literal Literal
	// Matches is how many matches the conditions before it have, and First the first
	// of these; Reason.Node is -1 in it. With a failing aggregate they are those of the
	// whole body.
	Matches int
	First   Match
	Text    string // what fails, for First
	Error   error  // of a computation that fails
	Node    int    // what is Absent of a derived relation, or -1
	Found   *Row   // the first row that a negation finds
	// Given are the first rows that an aggregate gives instead, and GivenCount how many
	// there are.
	Given      []Row
	GivenCount int
}

// doubter looks for what fails.
type doubter struct {
	model   Model
	program *analysis.Program
	limits  Limits
	out     *Absence
	ids     map[string]int
	queue   []absent
	bytes   int
}

type absent struct {
	at, level int
	id        analysis.RelationID
	row       []value.Value
}

// WhyNot says why a query has no row. Its errors are those of the model, but for a
// spent budget, which makes a cut.
func WhyNot(m Model, q *analysis.Query, parameters []value.Value, limits Limits) (
	*Absence, error,
) {
	d := &doubter{
		model: m, program: m.Program(), limits: limits.withDefaults(), ids: map[string]int{},
		out: &Absence{Query: q.Text},
	}
	err := d.query(q, parameters)
	for err == nil && len(d.queue) > 0 {
		next := d.queue[0]
		d.queue = d.queue[1:]
		err = d.relation(next)
	}
	if errors.Is(err, dataflow.ErrBudget) && len(d.out.Absent) > 0 {
		d.cut(CutSteps)
		for _, left := range d.queue {
			d.out.Absent[left.at].Cut = true
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return d.out, nil
}

func (d *doubter) cut(c Cut) { d.out.Cut = cmp.Or(d.out.Cut, c) }

// query looks for what fails of the query itself.
func (d *doubter) query(q *analysis.Query, parameters []value.Value) error {
	var err error
	if _, d.out.Rows, err = d.model.Ask(d.program, q, parameters, 1); err != nil || d.out.Rows > 0 {
		return err
	}
	if q.Limit > 0 {
		all := *q
		all.Order, all.Limit, all.Offset = nil, 0, 0
		_, d.out.Beyond, err = d.model.Ask(d.program, &all, parameters, 1)
		if err != nil || d.out.Beyond > 0 {
			return err
		}
	}
	d.out.Absent = []Absent{{Cut: true}}
	binding := make([]value.Value, len(q.Body.Variables))
	copy(binding, parameters)
	f := Failure{Clause: Clause{Rule: -1, Text: q.Text}, Node: -1}
	if err := d.body(&f, &q.Body, binding, 0); err != nil {
		return err
	}
	d.out.Absent[0] = Absent{Failures: []Failure{f}}
	return nil
}

// relation looks for what fails of the rules of a relation.
func (d *doubter) relation(a absent) error {
	d.out.Absent[a.at].Cut = true // until all is known
	var failures []Failure
	for i := range d.program.Rules {
		if d.program.Rules[i].Head.Relation != a.id {
			continue
		}
		f, err := d.rule(i, a)
		if err != nil {
			return err
		}
		failures = append(failures, f)
	}
	d.out.Absent[a.at].Failures, d.out.Absent[a.at].Cut = failures, false
	return nil
}

// rule looks for what fails of one rule.
func (d *doubter) rule(rule int, a absent) (Failure, error) {
	r := &d.program.Rules[rule]
	f := Failure{Clause: clauseOf(d.program, rule), Node: -1}
	binding, ok := unify(r, a.row)
	if !ok {
		f.Kind = FailHead
		f.Text = "its head never gives " + Row{d.program.Relations[a.id].Name, a.row}.String()
		return f, nil
	}
	err := d.body(&f, &r.Body, binding, a.level)
	if err == nil && f.Text == "" {
		if r.Aggregates == nil {
			return f, fmt.Errorf("proof: %s is derived and missing", r.Text)
		}
		err = d.aggregate(&f, rule, a)
	}
	return f, err
}

// body looks for the first condition that fails under a binding. It leaves f.Text
// empty if there is none.
func (d *doubter) body(f *Failure, b *analysis.Body, binding []value.Value, level int) error {
	// What the head says of a computed variable is compared at the end.
	needed := make([]value.Value, len(binding))
	body, own := *b, len(b.Comparisons)
	body.Comparisons = slices.Clone(b.Comparisons)
	var vars []int
	var key []value.Value
	known := make([]bool, len(binding))
	for v, x := range binding {
		switch {
		case x.Kind() == value.Invalid:
		case isComputed(b, v):
			needed[v] = x
			body.Comparisons = append(body.Comparisons, analysis.Comparison{
				Op: analysis.Eq, Left: analysis.Term{Var: v}, Right: analysis.ConstTerm(x),
			})
		default:
			vars, key, known[v] = append(vars, v), append(key, x), true
		}
	}
	first := slices.Clone(binding)
	for v, x := range needed {
		if x.Kind() != value.Invalid {
			first[v] = value.Value{}
		}
	}
	f.Matches, f.First.Values = 1, first
	prefix := analysis.Body{Variables: body.Variables}
	for _, l := range orderOf(d.program, &body, known) {
		extend(&prefix, &body, l, known)
		var out []int
		for v, isKnown := range known {
			if isKnown && !slices.Contains(vars, v) {
				out = append(out, v)
			}
		}
		rows, count, err := d.model.Ask(d.program, bound(&prefix, vars, out), key, 1)
		if err != nil {
			return err
		}
		if count == 0 {
			return d.fails(f, &body, l, own, level)
		}
		f.Matches = count
		for i, v := range out {
			f.First.Values[v] = rows[0][i]
		}
		r := Reason{Literal: l, Node: -1}
		if l.Kind != Comparison || l.Index < own {
			r.Text = literalText(d.program, b, l, f.First.Values)
			f.First.Because = append(f.First.Because, r)
		}
	}
	return nil
}

// extend adds a condition of a body to a part of it.
func extend(part, b *analysis.Body, l Literal, known []bool) {
	switch l.Kind {
	case Atom:
		part.Atoms = append(part.Atoms, b.Atoms[l.Index])
		mark(known, b.Atoms[l.Index].Terms)
	case Negation:
		part.Negations = append(part.Negations, b.Negations[l.Index])
	case Comparison:
		part.Comparisons = append(part.Comparisons, b.Comparisons[l.Index])
	case Computation:
		part.Computations = append(part.Computations, b.Computations[l.Index])
		known[b.Computations[l.Index].Out] = true
	}
}

// fails says how a condition fails for the first match of those before it.
func (d *doubter) fails(f *Failure, b *analysis.Body, l Literal, own, level int) error {
	f.Kind, f.Literal = FailCondition, l
	values := f.First.Values
	f.First.Bindings = named(b, values)
	// The texts of the first match were made when fewer conditions were known.
	for i := range f.First.Because {
		r := &f.First.Because[i]
		r.Text = literalText(d.program, b, r.Literal, values)
	}
	d.bytes += size(values)
	switch l.Kind {
	case Atom:
		a := b.Atoms[l.Index]
		name := atomText(d.program, b, a, values)
		if !d.program.Relations[a.Relation].Derived {
			f.Text = "there is no fact " + name
			return nil
		}
		f.Text = "there is no row " + name
		if !repeats(a.Terms, values) {
			f.Node = d.absent(a.Relation, pattern(a, values), level+1)
		}
	case Negation:
		a := b.Negations[l.Index]
		q := patternQuery(a.Relation, d.program, pattern(a, values))
		rows, _, err := d.model.Ask(d.program, q, nil, 1)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return errors.New("proof: a negation fails without a row")
		}
		f.Found = &Row{d.program.Relations[a.Relation].Name, rows[0]}
		f.Text = "there is " + f.Found.String()
		d.bytes += size(rows[0])
	case Comparison:
		if l.Index < own {
			f.Text = literalText(d.program, b, l, values) + " does not hold"
			return nil
		}
		c := b.Comparisons[l.Index]
		f.Kind = FailComputed
		f.Literal = Literal{Computation, slices.IndexFunc(b.Computations,
			func(k analysis.Computation) bool { return k.Out == c.Left.Var })}
		f.Text = fmt.Sprintf("it computes %s, not %s", valueText(values[c.Left.Var]),
			valueText(c.Right.Const))
	case Computation:
		_, err := compute(b.Computations[l.Index], values)
		if err == nil {
			return errors.New("proof: a computation fails without an error")
		}
		f.Error = err
		f.Text = literalText(d.program, b, l, values) + " fails: " + err.Error()
	}
	return nil
}

// repeats reports whether a variable without a value stands twice in the terms.
func repeats(terms []analysis.Term, values []value.Value) bool {
	for i, t := range terms {
		for _, other := range terms[:i] {
			if !t.IsConst() && other.Var == t.Var && values[t.Var].Kind() == value.Invalid {
				return true
			}
		}
	}
	return false
}

// absent returns the node of what no row agrees with, or -1 if a limit leaves it out.
func (d *doubter) absent(id analysis.RelationID, row []value.Value, level int) int {
	key := spell(id, row)
	if at, ok := d.ids[key]; ok {
		return at
	}
	d.bytes += size(row)
	switch {
	case level > d.limits.Levels:
		d.cut(CutLevels)
		return -1
	case len(d.out.Absent) >= d.limits.Nodes:
		d.cut(CutNodes)
		return -1
	case d.bytes > bytesMax:
		d.cut(CutBytes)
		return -1
	}
	at := len(d.out.Absent)
	d.ids[key] = at
	d.out.Absent = append(d.out.Absent, Absent{
		Row: Row{d.program.Relations[id].Name, row}, Cut: true,
	})
	d.queue = append(d.queue, absent{at, level, id, row})
	return at
}

// aggregate says what an aggregating rule gives for the groups that a pattern leaves.
func (d *doubter) aggregate(f *Failure, rule int, a absent) error {
	r := &d.program.Rules[rule]
	group := slices.Clone(a.row)
	several := false
	for c, g := range r.Aggregates {
		if g.Kind != analysis.NoAggregate {
			group[c] = value.Value{}
			several = several || g.Kind >= analysis.TopK
		}
	}
	rows, count, err := askClause(d.model, d.program, rule, group, d.limits.Matches)
	if err != nil {
		return err
	}
	name := d.program.Relations[a.id].Name
	f.First.Bindings = named(&r.Body, f.First.Values)
	f.GivenCount = count
	for _, row := range rows {
		f.Given = append(f.Given, Row{name, row})
		d.bytes += size(row)
	}
	switch {
	case count > 0:
		f.Kind = FailAggregate
		f.Text = "it gives " + f.Given[0].String()
		if count > 1 {
			f.Text += fmt.Sprintf(" and %d more", count-1)
		}
		f.Text += ", not " + Row{name, a.row}.String()
	case several:
		f.Kind, f.Text = FailNoneChosen, "the aggregate chooses none of the values"
	default:
		f.Kind, f.Text = FailOverflow, "the aggregated value is too large for its column"
	}
	return nil
}
