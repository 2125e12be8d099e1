package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

// absence checks why a query has no rows.
func (c *explained) absence(q *analysis.Query, a *proof.Absence, rows [][]value.Value) error {
	if a.Rows != len(rows) {
		return fmt.Errorf("%d rows, want %d", a.Rows, len(rows))
	}
	if len(rows) > 0 {
		return nil
	}
	whole := *q
	whole.Limit, whole.Offset, whole.Order = 0, 0, nil
	if beyond, _ := c.db.Ask(&whole, c.parameters); len(beyond) != a.Beyond {
		return fmt.Errorf("%d rows beyond, want %d", a.Beyond, len(beyond))
	}
	if a.Beyond > 0 {
		return nil
	}
	for at := range a.Absent {
		n := &a.Absent[at]
		if n.Cut {
			if a.Cut == proof.Whole {
				return fmt.Errorf("%v is cut for no reason", n.Row)
			}
			continue
		}
		if at == 0 {
			body := q.Body
			for i, v := range c.parameters {
				body = equals(body, analysis.Term{Var: i}, v)
			}
			if err := c.failure(a, &n.Failures[0], given(&body, c.parameters), nil); err != nil {
				return err
			}
			continue
		}
		if err := c.absent(a, n); err != nil {
			return fmt.Errorf("%v: %w", n.Row, err)
		}
	}
	return nil
}

// given returns a body in which the first variables have values.
func given(b *analysis.Body, values []value.Value) *analysis.Body {
	to := make([]value.Value, len(b.Variables))
	copy(to, values)
	return replaced(b, to)
}

// replaced returns a body in which the variables that have a value are that value.
func replaced(b *analysis.Body, to []value.Value) *analysis.Body {
	out := *b
	terms := func(in []analysis.Term) []analysis.Term {
		in = slices.Clone(in)
		for i, t := range in {
			if !t.IsConst() && to[t.Var].Kind() != value.Invalid {
				in[i] = analysis.ConstTerm(to[t.Var])
			}
		}
		return in
	}
	out.Atoms, out.Negations = slices.Clone(b.Atoms), slices.Clone(b.Negations)
	for i := range out.Atoms {
		out.Atoms[i].Terms = terms(out.Atoms[i].Terms)
	}
	for i := range out.Negations {
		out.Negations[i].Terms = terms(out.Negations[i].Terms)
	}
	out.Comparisons, out.Computations = slices.Clone(b.Comparisons), slices.Clone(b.Computations)
	for i, k := range out.Comparisons {
		sides := terms([]analysis.Term{k.Left, k.Right})
		out.Comparisons[i].Left, out.Comparisons[i].Right = sides[0], sides[1]
	}
	for i := range out.Computations {
		out.Computations[i].Args = terms(out.Computations[i].Args)
	}
	return &out
}

// absent checks why no row agrees with a pattern.
func (c *explained) absent(a *proof.Absence, n *proof.Absent) error {
	id, ok := c.program.RelationNamed(n.Row.Relation)
	if !ok || !c.program.Relations[id].Derived || c.has(id, n.Row.Values) {
		return errors.New("there is such a row")
	}
	c.met["absent"]++
	for i := range n.Failures {
		what := fmt.Sprint("fails ", n.Failures[i].Kind)
		if n.Failures[i].Kind == proof.FailCondition {
			what += " " + kinds[n.Failures[i].Literal.Kind]
		}
		c.met[what]++
	}
	at := 0
	for i := range c.program.Rules {
		r := &c.program.Rules[i]
		if r.Head.Relation != id {
			continue
		}
		if at == len(n.Failures) || n.Failures[at].Clause.Rule != i {
			return errors.New("a rule is left out")
		}
		if err := c.rule(a, n, &n.Failures[at], r); err != nil {
			return fmt.Errorf("%s: %w", r.Text, err)
		}
		at++
	}
	return nil
}

func (c *explained) rule(a *proof.Absence, n *proof.Absent, f *proof.Failure,
	r *analysis.Rule,
) error {
	to := make([]value.Value, len(r.Body.Variables))
	needed := map[int]value.Value{}
	fits := true
	for i, t := range r.Head.Terms {
		v := n.Row.Values[i]
		if v.Kind() == value.Invalid ||
			r.Aggregates != nil && r.Aggregates[i].Kind != analysis.NoAggregate {
			continue
		}
		if t.IsConst() {
			fits = fits && t.Const == v
			continue
		}
		if other, ok := needed[t.Var]; ok && other != v {
			fits = false
		}
		needed[t.Var] = v
	}
	if fits == (f.Kind == proof.FailHead) {
		return fmt.Errorf("the head fits: %v", fits)
	}
	if !fits {
		return nil
	}
	late := map[int]value.Value{}
	for v, x := range needed {
		isOut := func(k analysis.Computation) bool { return k.Out == v }
		if slices.ContainsFunc(r.Body.Computations, isOut) {
			late[v] = x
		} else {
			to[v] = x
		}
	}
	body := replaced(&r.Body, to)
	switch f.Kind {
	case proof.FailAggregate, proof.FailOverflow, proof.FailNoneChosen:
		for v, x := range late {
			*body = equals(*body, analysis.Term{Var: v}, x)
		}
		return c.otherwise(n, f, r, body)
	}
	return c.failure(a, f, body, late)
}

// otherwise checks that an aggregate gives other rows than a pattern.
func (c *explained) otherwise(n *proof.Absent, f *proof.Failure, r *analysis.Rule,
	body *analysis.Body,
) error {
	matches, _ := c.db.Ask(all(body), nil)
	if len(matches) != f.Matches || len(matches) == 0 {
		return fmt.Errorf("%d matches, want %d", f.Matches, len(matches))
	}
	var rows [][]value.Value
	for _, row := range c.alone(f.Clause.Rule) {
		fits := true
		for i, v := range n.Row.Values {
			isGroup := r.Aggregates[i].Kind == analysis.NoAggregate
			fits = fits && (!isGroup || v.Kind() == value.Invalid || v == row[i])
		}
		if fits {
			rows = append(rows, row)
		}
	}
	if len(rows) != f.GivenCount || (len(rows) > 0) != (f.Kind == proof.FailAggregate) {
		return fmt.Errorf("the aggregate gives %v", rows)
	}
	for _, g := range f.Given {
		if !contains(rows, g.Values) {
			return fmt.Errorf("the aggregate does not give %v", g)
		}
	}
	return nil
}

// failure checks that matches of the conditions before the failing one are as told,
// and none meets it. late are values that computed variables ought to have.
func (c *explained) failure(a *proof.Absence, f *proof.Failure, body *analysis.Body,
	late map[int]value.Value,
) error {
	part := analysis.Body{Variables: body.Variables}
	computed := map[int]bool{}
	last := -1 // the variable computed last
	for _, r := range f.First.Because {
		add(&part, body, r.Literal)
		if r.Kind == proof.Computation {
			last = body.Computations[r.Index].Out
			computed[last] = true
		}
		if err := c.holds(body, r.Literal, f.First.Values); err != nil {
			return fmt.Errorf("%s of the first match: %w", r.Text, err)
		}
	}
	fails := part
	for v := range body.Variables {
		x, ok := late[v]
		if !ok || !computed[v] {
			continue
		}
		if v == last && f.Kind == proof.FailCondition && f.Literal.Kind == proof.Comparison {
			continue // it is compared after the comparisons of the rule
		}
		fails = equals(fails, analysis.Term{Var: v}, x)
		if f.Kind == proof.FailComputed && body.Computations[f.Literal.Index].Out == v {
			continue
		}
		part = equals(part, analysis.Term{Var: v}, x)
	}
	rows, _ := c.db.Ask(all(&part), nil)
	if len(rows) != f.Matches {
		return fmt.Errorf("%s: %d matches before it, want %d", f.Text, f.Matches, len(rows))
	}
	if f.Kind == proof.FailCondition {
		add(&fails, body, f.Literal)
	}
	if rows, _ := c.db.Ask(all(&fails), nil); len(rows) > 0 {
		return fmt.Errorf("%s, but it holds for %v", f.Text, rows)
	}
	return c.told(a, f, body)
}

// told checks what is said of a failing condition beside its text.
func (c *explained) told(a *proof.Absence, f *proof.Failure, body *analysis.Body) error {
	if f.Kind != proof.FailCondition {
		return nil
	}
	values := f.First.Values
	switch f.Literal.Kind {
	case proof.Atom:
		at := body.Atoms[f.Literal.Index]
		if f.Node >= 0 && (a.Absent[f.Node].Row.Relation != c.program.Relations[at.Relation].Name ||
			!slices.Equal(a.Absent[f.Node].Row.Values, instantiate(at.Terms, values))) {
			return fmt.Errorf("%s leads to %v", f.Text, a.Absent[f.Node].Row)
		}
	case proof.Negation:
		at := body.Negations[f.Literal.Index]
		id, ok := c.program.RelationNamed(f.Found.Relation)
		if !ok || id != at.Relation || !c.has(id, f.Found.Values) {
			return fmt.Errorf("%s: it is not there", f.Text)
		}
		for i, v := range instantiate(at.Terms, values) {
			if v.Kind() != value.Invalid && v != f.Found.Values[i] {
				return fmt.Errorf("%s does not fit", f.Text)
			}
		}
	case proof.Comparison:
		if c.holds(body, f.Literal, values) == nil {
			return fmt.Errorf("%s, but it does", f.Text)
		}
	case proof.Computation:
		k := body.Computations[f.Literal.Index]
		if _, err := k.Function.Eval(instantiate(k.Args, values)); err == nil ||
			!strings.HasSuffix(f.Text, err.Error()) {
			return fmt.Errorf("%s, but %w", f.Text, err)
		}
	}
	return nil
}

// add adds a condition of a body to a part of it.
func add(part, b *analysis.Body, l proof.Literal) {
	switch l.Kind {
	case proof.Atom:
		part.Atoms = append(part.Atoms, b.Atoms[l.Index])
	case proof.Negation:
		part.Negations = append(part.Negations, b.Negations[l.Index])
	case proof.Comparison:
		part.Comparisons = append(part.Comparisons, b.Comparisons[l.Index])
	case proof.Computation:
		part.Computations = append(part.Computations, b.Computations[l.Index])
	}
}
