package oracle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

// TestWhy has the engine explain random programs after random transactions: each row
// of each relation, and rows that are not there. Every step of every explanation is
// checked against the naive twin.
func TestWhy(t *testing.T) {
	programs := 400
	if testing.Short() || underRace {
		programs /= 10
	}
	if *oracleSeed != 0 {
		if err := explain(*oracleSeed, map[string]int{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	first := rand.Uint64()>>1 + 1
	t.Logf("first seed %d", first)
	met := map[string]int{}
	for i := range programs {
		if err := explain(first+uint64(i), met); err != nil {
			t.Fatalf("seed %d: %v", first+uint64(i), err)
		}
	}
	t.Log(met)
	if programs < 400 {
		return // chance decides
	}
	for _, what := range []string{
		"row", "fact", "aggregate", "negation", "computation", "absent",
		"fails 0", "fails 1 atom", "fails 1 negation", "fails 1 comparison", "fails 2", "fails 3",
	} {
		if met[what] == 0 {
			t.Errorf("nothing met: %s", what)
		}
	}
}

// explain plays the scenario of a seed and then has everything explained.
func explain(seed uint64, met map[string]int) error {
	g := newGenerator(seed)
	s := g.scenario()
	r := newRun(&seen{tags: map[string]bool{}})
	if err := r.deploy(s.program); err != nil {
		return err
	}
	r.engine.StartProfile() // its meters must change nothing
	for i := range s.steps {
		if err := r.do(&s.steps[i], s.told); err != nil {
			return err
		}
	}
	c := &explained{run: r, program: r.program, db: r.derived(), met: met}
	if err := c.refill(g); err != nil {
		return err
	}
	for id := range r.program.Relations {
		columns := r.program.Relations[id].Columns
		whole := make([]value.Value, len(columns))
		if err := c.query(ask(r.program, analysis.RelationID(id), whole)); err != nil {
			return fmt.Errorf("%w\n%v", err, s.program)
		}
		for range 3 {
			row := make([]value.Value, len(columns))
			for i, column := range columns {
				if g.IntN(4) > 0 {
					row[i] = g.value(columnOf(column))
				}
			}
			if err := c.query(ask(r.program, analysis.RelationID(id), row)); err != nil {
				return fmt.Errorf("%w\n%v", err, s.program)
			}
		}
	}
	if err := c.pinned(g); err != nil {
		return fmt.Errorf("%w\n%v", err, s.program)
	}
	for _, v := range r.program.Views {
		for i := range v.Parts {
			c.parameters = nil
			for _, p := range v.Parameters {
				c.parameters = append(c.parameters, g.value(column{kind: p.Type}))
			}
			if err := c.query(&v.Parts[i].Query); err != nil {
				return fmt.Errorf("%w\n%v", err, s.program)
			}
		}
	}
	return nil
}

// refill puts the facts into another engine in another order.
func (c *explained) refill(g *generator) error {
	c.other = engine.New(nil)
	if _, err := c.other.Deploy(c.program, false); err != nil {
		return err
	}
	s := analysis.Statement{Ops: c.all()}
	g.Shuffle(len(s.Ops), func(i, k int) { s.Ops[i], s.Ops[k] = s.Ops[k], s.Ops[i] })
	_, err := c.other.Transact(1, []analysis.Statement{s}, nil, engine.TransactOptions{})
	return err
}

func columnOf(c analysis.Column) column { return column{c.Type, c.Nullable} }

// ask is a query for the rows of a relation that agree with a pattern.
func ask(p *analysis.Program, id analysis.RelationID, pattern []value.Value) *analysis.Query {
	q := &analysis.Query{Columns: p.Relations[id].Columns}
	for i, v := range pattern {
		term := analysis.ConstTerm(v)
		if v.Kind() == value.Invalid {
			c := p.Relations[id].Columns[i]
			term = analysis.Term{Var: len(q.Body.Variables)}
			q.Body.Variables = append(q.Body.Variables,
				analysis.Variable{Name: "A", Type: c.Type, Nullable: c.Nullable})
		}
		q.Output = append(q.Output, term)
	}
	q.Body.Atoms = []analysis.Atom{{Relation: id, Terms: q.Output}}
	q.Text = fmt.Sprint("?", p.Relations[id].Name, pattern)
	return q
}

// explained checks what an engine says of one state.
type explained struct {
	run        *run
	other      *engine.Engine // of the same facts
	program    *analysis.Program
	db         *naive.Database
	parameters []value.Value
	met        map[string]int // counts what explanations had in them
}

func (c *explained) query(q *analysis.Query) error {
	if len(q.Parameters) == 0 {
		c.parameters = nil
	}
	rows, doubt := c.db.Ask(q, c.parameters)
	if doubt == naive.Unsure {
		return nil
	}
	limits := proof.Limits{Rows: 30, Nodes: 20_000, Levels: 6}
	opt := engine.WhyOptions{Limits: limits, Budget: 50_000_000}
	why, err := c.run.engine.Why(q, c.parameters, opt)
	if err != nil {
		return fmt.Errorf("why %s: %w", q.Text, err)
	}
	if err := c.proof(q, why, rows); err != nil {
		return fmt.Errorf("why %s: %w\n%v", q.Text, err, why)
	}
	again, err := c.other.Why(q, c.parameters, opt)
	if err != nil || again.String() != why.String() {
		return fmt.Errorf("why %s: another answer of the same facts: %w\n%v\n%v", q.Text, err,
			why, again)
	}
	not, err := c.run.engine.WhyNot(q, c.parameters, opt)
	if err != nil {
		return fmt.Errorf("why not %s: %w", q.Text, err)
	}
	if err := c.absence(q, not, rows); err != nil {
		return fmt.Errorf("why not %s: %w\n%v", q.Text, err, not)
	}
	notAgain, err := c.other.WhyNot(q, c.parameters, opt)
	if err != nil || notAgain.String() != not.String() {
		return fmt.Errorf("why not %s: another answer of the same facts: %w\n%v\n%v", q.Text, err,
			not, notAgain)
	}
	return nil
}

// proof checks a proof of the rows of a query.
func (c *explained) proof(q *analysis.Query, p *proof.Proof, rows [][]value.Value) error {
	if p.Rows != len(rows) || len(p.Roots) != min(len(rows), 30) || p.Cut != proof.Whole {
		return fmt.Errorf("%d rows, %d proved, cut %q: want %d", p.Rows, len(p.Roots), p.Cut,
			len(rows))
	}
	for _, at := range p.Roots {
		n := &p.Nodes[at]
		if !contains(rows, n.Row.Values) {
			return fmt.Errorf("row %v is none", n.Row.Values)
		}
		if !slices.Equal(instantiate(q.Output, n.Values), n.Row.Values) {
			return fmt.Errorf("the root's match gives no %v", n.Row.Values)
		}
		if !slices.Equal(n.Values[:len(c.parameters)], c.parameters) {
			return errors.New("the root has other parameters")
		}
	}
	state := make([]int, len(p.Nodes))
	for i := range p.Nodes {
		if err := c.node(q, p, i); err != nil {
			return fmt.Errorf("%v: %w", p.Nodes[i].Row, err)
		}
		if isCircular(p, i, state) {
			return fmt.Errorf("%v proves itself", p.Nodes[i].Row)
		}
	}
	return nil
}

func contains(rows [][]value.Value, row []value.Value) bool {
	return slices.ContainsFunc(rows, func(r []value.Value) bool { return slices.Equal(r, row) })
}

// isCircular walks down from a node; state is 1 for nodes above, 2 for those done.
func isCircular(p *proof.Proof, at int, state []int) bool {
	if state[at] != 0 {
		return state[at] == 1
	}
	state[at] = 1
	for _, m := range append([]proof.Match{p.Nodes[at].Match}, p.Nodes[at].Shown...) {
		for _, r := range m.Because {
			if r.Node >= 0 && isCircular(p, r.Node, state) {
				return true
			}
		}
	}
	state[at] = 2
	return false
}

func (c *explained) node(q *analysis.Query, p *proof.Proof, at int) error {
	n := &p.Nodes[at]
	if n.Row.Relation == "" {
		return c.match(p, &q.Body, n.Match)
	}
	id, ok := c.program.RelationNamed(n.Row.Relation)
	if !ok || !c.has(id, n.Row.Values) {
		return errors.New("there is no such row")
	}
	if n.Fact != !c.program.Relations[id].Derived || n.Cut {
		return errors.New("a fact that is none, or a derived row without a proof")
	}
	if n.Fact {
		c.met["fact"]++
		return nil
	}
	c.met["row"]++
	r := &c.program.Rules[n.Clause.Rule]
	if r.Head.Relation != id || n.Clause.Text != r.Text || n.Clause.Pos != r.Pos {
		return errors.New("a rule of another relation")
	}
	if r.Aggregates != nil {
		return c.aggregate(p, n, r)
	}
	if !slices.Equal(instantiate(r.Head.Terms, n.Values), n.Row.Values) {
		return errors.New("the rule gives another row")
	}
	return c.match(p, &r.Body, n.Match)
}

func (c *explained) aggregate(p *proof.Proof, n *proof.Node, r *analysis.Rule) error {
	c.met["aggregate"]++
	body := r.Body
	for i, t := range r.Head.Terms {
		switch a := &r.Aggregates[i]; {
		case a.Kind == analysis.NoAggregate:
			body = equals(body, t, n.Row.Values[i])
		case a.Kind >= analysis.TopK:
			body = chosenFrom(body, a)
		}
	}
	matches, _ := c.db.Ask(all(&body), nil)
	if n.Matches != len(matches) || n.AtLeast || len(n.Shown) != min(len(matches), 5) {
		return fmt.Errorf("%d matches, %d shown, want %d", n.Matches, len(n.Shown), len(matches))
	}
	for i, m := range n.Shown {
		if err := c.match(p, &body, m); err != nil {
			return err
		}
		for _, other := range n.Shown[:i] {
			if slices.Equal(other.Values, m.Values) {
				return errors.New("a match is shown twice")
			}
		}
	}
	if !contains(c.alone(n.Clause.Rule), n.Row.Values) {
		return errors.New("the rule gives other rows")
	}
	return nil
}

// chosenFrom returns a body with the conditions for what an aggregate chooses from.
func chosenFrom(b analysis.Body, a *analysis.Aggregate) analysis.Body {
	b.Comparisons = append(slices.Clip(b.Comparisons), analysis.Comparison{
		Op: analysis.Ne, Left: a.Arg, Right: analysis.ConstTerm(value.OfNull()),
	})
	if a.Kind == analysis.TopK {
		return b
	}
	op := analysis.Le
	if a.Descending {
		op = analysis.Ge
	}
	b.Comparisons = append(b.Comparisons,
		analysis.Comparison{Op: op, Left: a.Arg, Right: analysis.ConstTerm(a.Threshold)})
	return b
}

// alone returns the rows that one rule gives.
func (c *explained) alone(rule int) [][]value.Value {
	r := c.program.Rules[rule]
	p := *c.program
	p.Relations = append(slices.Clip(p.Relations), p.Relations[r.Head.Relation])
	r.Head.Relation = analysis.RelationID(len(p.Relations) - 1)
	p.Rules = append(slices.Clip(p.Rules), r)
	return naive.Derive(&p, c.run.facts).Rows(r.Head.Relation)
}

// equals returns a body with one more comparison: a term has a value.
func equals(b analysis.Body, t analysis.Term, v value.Value) analysis.Body {
	b.Comparisons = append(slices.Clip(b.Comparisons),
		analysis.Comparison{Op: analysis.Eq, Left: t, Right: analysis.ConstTerm(v)})
	return b
}

// all asks for the values of all variables that a body binds.
func all(b *analysis.Body) *analysis.Query {
	q := &analysis.Query{Body: *b}
	binds := make([]bool, len(b.Variables))
	for _, a := range b.Atoms {
		for _, t := range a.Terms {
			if !t.IsConst() {
				binds[t.Var] = true
			}
		}
	}
	for _, c := range b.Computations {
		binds[c.Out] = true
	}
	for v, isBound := range binds {
		if isBound {
			q.Output = append(q.Output, analysis.Term{Var: v})
		}
	}
	return q
}

func instantiate(terms []analysis.Term, values []value.Value) []value.Value {
	row := make([]value.Value, len(terms))
	for i, t := range terms {
		if row[i] = t.Const; !t.IsConst() {
			row[i] = values[t.Var]
		}
	}
	return row
}

// has reports whether a row agrees with a pattern.
func (c *explained) has(id analysis.RelationID, pattern []value.Value) bool {
	rows, _ := c.db.Ask(ask(c.program, id, pattern), nil)
	return len(rows) > 0
}

// match checks that a match meets each condition of a body.
func (c *explained) match(p *proof.Proof, b *analysis.Body, m proof.Match) error {
	met := map[proof.Literal]bool{}
	for _, r := range m.Because {
		if met[r.Literal] {
			return errors.New("a condition is met twice")
		}
		met[r.Literal] = true
		c.met[kinds[r.Kind]]++
		if err := c.holds(b, r.Literal, m.Values); err != nil {
			return fmt.Errorf("%s: %w", r.Text, err)
		}
		if r.Kind != proof.Atom {
			continue
		}
		a, n := b.Atoms[r.Index], &p.Nodes[r.Node]
		if n.Row.Relation != c.program.Relations[a.Relation].Name ||
			!slices.Equal(n.Row.Values, instantiate(a.Terms, m.Values)) {
			return fmt.Errorf("%s stands for %v", r.Text, n.Row)
		}
	}
	for _, l := range literals(b) {
		if !met[l] && (l.Kind != proof.Comparison || c.holds(b, l, m.Values) != nil) {
			return fmt.Errorf("condition %v is not met", l)
		}
	}
	return nil
}

var kinds = []string{"atom", "negation", "comparison", "computation"}

func literals(b *analysis.Body) []proof.Literal {
	var out []proof.Literal
	for kind, n := range []int{
		len(b.Atoms), len(b.Negations), len(b.Comparisons), len(b.Computations),
	} {
		for i := range n {
			out = append(out, proof.Literal{Kind: proof.Kind(kind), Index: i})
		}
	}
	return out
}

// holds checks one condition under the values of its variables.
func (c *explained) holds(b *analysis.Body, l proof.Literal, values []value.Value) error {
	var part analysis.Body
	part.Variables = b.Variables
	switch l.Kind {
	case proof.Atom:
		if !c.has(b.Atoms[l.Index].Relation, instantiate(b.Atoms[l.Index].Terms, values)) {
			return errors.New("no such row")
		}
		return nil
	case proof.Negation:
		if c.has(b.Negations[l.Index].Relation, instantiate(b.Negations[l.Index].Terms, values)) {
			return errors.New("such a row")
		}
		return nil
	case proof.Computation:
		k := b.Computations[l.Index]
		args := instantiate(k.Args, values)
		want := value.OfNull()
		if !slices.Contains(args, want) {
			var err error
			if want, err = k.Function.Eval(args); err != nil {
				return err
			}
		}
		if want != values[k.Out] {
			return fmt.Errorf("computes %v", want)
		}
		return nil
	}
	k := b.Comparisons[l.Index]
	sides := instantiate([]analysis.Term{k.Left, k.Right}, values)
	k.Left, k.Right = analysis.ConstTerm(sides[0]), analysis.ConstTerm(sides[1])
	part.Comparisons = []analysis.Comparison{k}
	if rows, _ := c.db.Ask(&analysis.Query{Body: part}, nil); len(rows) == 0 {
		return errors.New("does not hold")
	}
	return nil
}
