package dataflow

import (
	"cmp"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/value"
)

// samplesMax is the number of row errors of a clause that are told whole.
const samplesMax = 20

// ClauseErrors are the row errors of one clause: the bindings, among those that
// are demanded, for which a computation or the aggregate of the head fails.
type ClauseErrors struct {
	Clause  Clause
	Count   int
	Samples []RowError // samplesMax of them at most
}

// RowError is a binding for which a clause cannot be computed, and why.
type RowError struct {
	Err       error // a *builtin.Error
	Variables []analysis.Variable
	Values    []value.Value // of Variables
}

// failures are the rows for which one stage of a clause fails, or the aggregate of
// its head.
type failures struct {
	failureKey
	predicate *predicate
	body      *analysis.Body
	// columns are variables of the body or, in an aggregate's group, constants.
	columns []analysis.Term
}

// listFailures lists what can fail, by clause and stage.
func (n *Network) listFailures(found map[failureKey]*predicate) {
	for key, p := range found {
		f := &failures{failureKey: key, predicate: p}
		if key.clause.Rule >= 0 {
			f.body = &n.program.Rules[key.clause.Rule].Body
		} else {
			f.body = &n.queries[key.clause.Goal].Body
		}
		if key.stage == aggregateStage {
			f.columns = groupOf(&n.program.Rules[key.clause.Rule])
		} else {
			f.columns = f.stages(n).binding(key.stage)
		}
		n.failures = append(n.failures, f)
	}
	slices.SortFunc(n.failures, func(a, b *failures) int {
		// Rules before goals: the index that does not apply is -1.
		return cmp.Or(cmp.Compare(a.clause.Goal, b.clause.Goal),
			cmp.Compare(a.clause.Rule, b.clause.Rule), cmp.Compare(a.stage, b.stage))
	})
}

func (f *failures) stages(n *Network) *stages {
	if f.clause.Rule >= 0 {
		return stagesOf(f.body, 0)
	}
	return stagesOf(f.body, len(n.queries[f.clause.Goal].Parameters))
}

// groupOf returns the columns of an aggregating head that are not aggregated.
func groupOf(r *analysis.Rule) []analysis.Term {
	var group []analysis.Term
	for c, a := range r.Aggregates {
		if a.Kind == analysis.NoAggregate {
			group = append(group, r.Head.Terms[c])
		}
	}
	return group
}

// ErrorsChanged reports whether the row errors may have changed since the last call.
func (n *Network) ErrorsChanged() bool {
	changed := n.errorsChanged
	n.errorsChanged = false
	return changed
}

// Errors calls yield for each clause that has row errors, in order, rules before
// goals, until it returns false.
func (n *Network) Errors(yield func(ClauseErrors) bool) {
	if n.failing == 0 {
		return
	}
	for i := 0; i < len(n.failures); {
		e := ClauseErrors{Clause: n.failures[i].clause}
		for ; i < len(n.failures) && n.failures[i].clause == e.Clause; i++ {
			f := n.failures[i]
			e.Count += f.predicate.table.Len()
			n.sample(f, &e)
		}
		if e.Count > 0 && !yield(e) {
			return
		}
	}
}

// Cause returns the row errors of a clause that makes a goal Unsure or else Flagged,
// those of the goal's own body before others, and false if nothing does.
func (n *Network) Cause(goal int) (ClauseErrors, bool) {
	d := n.doubt(goal)
	if d == sure {
		return ClauseErrors{}, false
	}
	var cause *failures
	for i, f := range n.failures {
		if n.goals[goal].doubts[i] == d && f.predicate.table.Len() > 0 &&
			(cause == nil || f.clause.Rule < 0) {
			cause = f
		}
	}
	if cause == nil {
		panic("dataflow: a doubt has no cause")
	}
	e := ClauseErrors{Clause: cause.clause, Count: cause.predicate.table.Len()}
	n.sample(cause, &e)
	return e, true
}

// sample adds failing rows to the samples of their clause.
func (n *Network) sample(f *failures, e *ClauseErrors) {
	table := f.predicate.table
	for id, ok := table.NextVisible(0); ok && len(e.Samples) < samplesMax; {
		s := RowError{Err: n.reason(f, table.Row(id))}
		for c, t := range f.columns {
			if !t.IsConst() {
				s.Variables = append(s.Variables, f.body.Variables[t.Var])
				s.Values = append(s.Values, n.symbols.Value(table.Row(id)[c]))
			}
		}
		e.Samples = append(e.Samples, s)
		id, ok = table.NextVisible(id + 1)
	}
}

// reason returns the error of the first computation that fails for a row.
func (n *Network) reason(f *failures, row []value.ID) error {
	if f.stage == aggregateStage {
		return &builtin.Error{
			Code: builtin.Overflow, Message: "the aggregated value is too large for its column",
		}
	}
	values := make([]value.Value, len(f.body.Variables))
	for c, t := range f.columns {
		values[t.Var] = n.symbols.Value(row[c])
	}
	st := f.stages(n)
	for i, c := range f.body.Computations {
		if st.computations[i] > f.stage {
			continue
		}
		args := make([]value.Value, len(c.Args))
		isNull := false
		for k, t := range c.Args {
			if args[k] = t.Const; !t.IsConst() {
				args[k] = values[t.Var]
			}
			isNull = isNull || args[k].IsNull()
		}
		if values[c.Out] = value.OfNull(); isNull {
			continue
		}
		out, err := c.Function.Eval(args)
		if err != nil {
			return err
		}
		values[c.Out] = out
	}
	panic("dataflow: a row fails without a reason")
}

// doubt says how a clause's row errors touch a goal.
type doubt uint8

const (
	sure    doubt = iota
	flagged       // rows may be missing
	unsure        // rows may be wrong
)

// Flagged reports whether a goal depends on a clause that has row errors now: rows
// may be missing in its results.
func (n *Network) Flagged(goal int) bool { return n.doubt(goal) >= flagged }

// Unsure reports whether a goal depends through a negation or an aggregate on a
// clause that has row errors now: its results may hold rows that they should not.
func (n *Network) Unsure(goal int) bool { return n.doubt(goal) == unsure }

func (n *Network) doubt(goal int) doubt {
	d := sure
	if n.failing == 0 {
		return d
	}
	g := n.goals[goal]
	if g.doubts == nil {
		g.doubts = n.doubts(goal)
	}
	for i, f := range n.failures {
		if g.doubts[i] > d && f.predicate.table.Len() > 0 {
			d = g.doubts[i]
		}
	}
	return d
}

// doubts returns how the failures of each clause touch a goal.
func (n *Network) doubts(goal int) []doubt {
	reached := make([]doubt, len(n.program.Relations))
	type visit struct {
		id analysis.RelationID
		d  doubt
	}
	var path []visit
	follow := func(b *analysis.Body, d doubt) {
		for _, a := range b.Atoms {
			path = append(path, visit{a.Relation, d})
		}
		for _, a := range b.Negations {
			path = append(path, visit{a.Relation, unsure})
		}
	}
	follow(&n.queries[goal].Body, flagged)
	for len(path) > 0 {
		v := path[len(path)-1]
		path = path[:len(path)-1]
		if reached[v.id] >= v.d {
			continue
		}
		reached[v.id] = v.d
		for i := range n.clauses[v.id] {
			r := &n.program.Rules[n.clauses[v.id][i]]
			d := v.d
			if r.Aggregates != nil {
				d = unsure
			}
			follow(&r.Body, d)
		}
	}
	out := make([]doubt, len(n.failures))
	for i, f := range n.failures {
		if f.clause.Rule < 0 {
			if f.clause.Goal == goal {
				out[i] = flagged
			}
			continue
		}
		r := &n.program.Rules[f.clause.Rule]
		out[i] = reached[r.Head.Relation]
		if r.Aggregates != nil && f.stage != aggregateStage && out[i] > sure {
			out[i] = unsure
		}
	}
	return out
}
