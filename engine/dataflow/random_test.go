package dataflow

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/builtin"
	"github.com/heddle-live/heddle/engine/naive"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

var (
	randomSeed = flag.Uint64("random.seed", 0, "run this one program of the random test")
	randomTime = flag.Duration("random.time", 2*time.Second, "how long the random test runs")
)

const (
	randomSteps  = 30
	randomDomain = 4
)

// TestRandom compares networks with the naive evaluator on random programs, made by
// hand, with negations and computations, while base rows and demands come and go. A
// failure names its seed, and -random.seed runs it alone.
func TestRandom(t *testing.T) {
	if *randomSeed != 0 {
		if err := runRandom(*randomSeed, randomSteps); err != nil {
			t.Fatal(err)
		}
		return
	}
	seed := rand.Uint64()
	t.Logf("first seed %d", seed)
	programs := 0
	for start := time.Now(); time.Since(start) < *randomTime; programs++ {
		if err := runRandom(seed, randomSteps); err != nil {
			for steps := range randomSteps {
				if shorter := runRandom(seed, steps); shorter != nil {
					err = shorter
					break
				}
			}
			t.Fatal(err)
		}
		seed++
	}
	t.Logf("%d programs of %d steps; %v", programs, randomSteps, randomCounts)
}

// randomCounts says how often what is rare came up.
var randomCounts = map[string]int{}

// programs makes random programs over a few small ints and null.
type programs struct {
	*rand.Rand
	program   *analysis.Program
	functions []*builtin.Function
	stratum   []int // of the relations
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
			g.program.Rules = append(g.program.Rules, g.rule(analysis.RelationID(id), len(r.Columns)))
		}
	}
	var goals []*analysis.Query
	for range 1 + g.IntN(3) {
		q := &analysis.Query{Parameters: g.columns(g.IntN(3))}
		for range q.Parameters {
			q.Body.Variables = append(q.Body.Variables, analysis.Variable{Name: "P", Type: value.Int, Nullable: true})
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
		b.Variables = append(b.Variables,
			analysis.Variable{Name: "X", Type: value.Int, Nullable: true})
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
			b.Variables = append(b.Variables,
				analysis.Variable{Name: "X", Type: value.Int, Nullable: true})
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
		b.Variables = append(b.Variables, analysis.Variable{Name: "X", Type: value.Int, Nullable: true})
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
		b.Variables = append(b.Variables, analysis.Variable{Name: "F", Type: value.Int, Nullable: true})
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
			b.Variables = append(b.Variables, analysis.Variable{Type: value.Int, Nullable: true})
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
			fresh = append(fresh, analysis.Variable{Type: value.Int, Nullable: true})
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

// run is one random program with its network and what it should hold.
type run struct {
	programs
	symbols *failingSymbols
	network *Network
	goals   []*analysis.Query
	facts   naive.Facts
	demands []*watched
	told    []map[string]bool // the rows of each goal by what OnResult told
	trace   []string
}

// failingSymbols fails when it has given so many ids, if that is not 0.
type failingSymbols struct {
	symbols
	left int
}

var errFailing = errors.New("no more ids")

func (s *failingSymbols) ID(v value.Value) (value.ID, error) {
	if s.left > 0 {
		if s.left--; s.left == 0 {
			return 0, errFailing
		}
	}
	return s.symbols.ID(v)
}

type watched struct {
	goal int
	key  []value.Value
	row  relation.RowID
}

func runRandom(seed uint64, steps int) (err error) {
	r := &run{
		programs: programs{Rand: rand.New(rand.NewPCG(seed, 7))},
		symbols:  &failingSymbols{symbols: symbols{value.NewInterner()}}, facts: naive.Facts{},
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("seed %d: %w\n%s\n%s", seed, err, r.spell(),
				strings.Join(r.trace, "\n"))
		}
	}()
	r.goals = r.make()
	c := Config{Program: Prepare(r.program), Symbols: r.symbols, Goals: r.goals}
	for _, rel := range r.program.Relations {
		var table *relation.Relation
		if !rel.Derived {
			table = relation.New(len(rel.Columns), 0)
			r.facts[rel.Name] = naive.Set{}
		}
		c.Tables = append(c.Tables, table)
	}
	c.OnResult = r.onResult
	for range r.goals {
		r.told = append(r.told, map[string]bool{})
	}
	if r.network, err = New(c); err != nil {
		return err
	}
	if len(r.network.Wholes()) > 0 {
		randomCounts["whole"]++
	} else if slices.Max(r.network.levels) > 0 {
		randomCounts["early"]++
	}
	if slices.ContainsFunc(r.network.predicates, func(p *predicate) bool {
		return p.kind == demand && p.of >= 0 &&
			p.arity > len(r.program.Relations[p.of].Columns)-1 && p.component.recursive
	}) {
		randomCounts["factored"]++
	}
	for range steps {
		if err := r.step(c); err != nil {
			return err
		}
	}
	r.network.Limits(Limits{})
	for _, w := range r.demands {
		r.network.Withdraw(w.goal, w.row)
	}
	if _, _, err := r.network.Settle(); err != nil {
		return err
	}
	if rows := r.network.DerivedRows(); rows != 0 || r.network.rows != 0 {
		return fmt.Errorf("%d derived rows are left without a demand, and %d are counted",
			rows, r.network.rows)
	}
	return nil
}

// step makes a few changes and settles, perhaps within limits, or in a mark that
// ends with a rollback.
func (r *run) step(c Config) error {
	rollback := r.IntN(6) == 0
	before := r.save()
	if rollback || r.IntN(8) == 0 {
		r.note("mark")
		r.network.Mark()
	}
	for range 1 + r.IntN(3) {
		if err := r.settle(r.IntN(4) == 0, !rollback); err != nil {
			return err
		}
		if err := r.compare(c); err != nil {
			return err
		}
	}
	if r.network.trail.marked && !rollback {
		r.note("forget")
		r.network.Forget()
	}
	if rollback {
		if r.IntN(2) == 0 {
			r.change(false)
		}
		r.note("rollback")
		r.network.Rollback()
		r.restore(before)
		randomCounts["rollback"]++
		return r.compare(c)
	}
	return nil
}

// settle makes a few changes and settles, perhaps within limits.
func (r *run) settle(isLimited, mayWithdraw bool) error {
	before := r.save()
	var l Limits
	if isLimited {
		switch r.IntN(4) {
		case 0:
			l.Derivations = 1 + uint64(r.IntN(20))
		case 1:
			l.Steps = 1 + uint64(r.IntN(60))
		case 2:
			l.Rows = r.network.rows + 1 + uint64(r.IntN(10))
		}
	}
	r.network.Limits(l)
	r.change(mayWithdraw)
	if isLimited && l.Derivations+l.Steps+l.Rows == 0 && !recounting { // which needs ids
		r.symbols.left = 1 + r.IntN(10)
	}
	r.note("settle within %d derivations, %d steps, %d rows", l.Derivations, l.Steps, l.Rows)
	_, _, err := r.network.Settle()
	r.symbols.left = 0
	switch {
	case err == nil:
	case !isLimited:
		return err
	case errors.Is(err, errFailing) || errors.Is(err, ErrBudget):
		randomCounts[fmt.Sprintf("%T", err)]++
		r.note("undone: %v", err)
		r.restore(before)
	default:
		return err
	}
	return nil
}

// saved is what a run should hold at some time.
type saved struct {
	facts   naive.Facts
	demands []*watched
}

func (r *run) save() saved { return saved{r.facts.Clone(), slices.Clone(r.demands)} }

func (r *run) restore(s saved) {
	r.facts, r.demands = s.facts.Clone(), slices.Clone(s.demands)
	for _, w := range r.demands {
		w.row, _ = r.network.DemandRow(w.goal, r.ids(w.key))
	}
}

func (r *run) note(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

func (r *run) ids(row []value.Value) []value.ID {
	ids := make([]value.ID, len(row))
	for i, v := range row {
		ids[i], _ = r.symbols.ID(v)
	}
	return ids
}

// change makes a few changes of base rows and demands, unsettled.
func (r *run) change(mayWithdraw bool) {
	for range 1 + r.IntN(4) {
		if r.IntN(4) > 0 {
			id := analysis.RelationID(r.IntN(3))
			rel := r.program.Relations[id]
			row := r.row(len(rel.Columns))
			if r.IntN(5) < 3 {
				r.note("+%s%v", rel.Name, row)
				r.network.Insert(id, r.ids(row))
				r.facts[rel.Name].Add(row)
			} else {
				r.note("-%s%v", rel.Name, row)
				r.network.Delete(id, r.ids(row))
				r.facts[rel.Name].Remove(row)
			}
			continue
		}
		if mayWithdraw && len(r.demands) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(r.demands))
			r.network.Withdraw(r.demands[i].goal, r.demands[i].row)
			r.note("withdraw %d%v", r.demands[i].goal, r.demands[i].key)
			r.demands = slices.Delete(r.demands, i, i+1)
			continue
		}
		goal := r.IntN(len(r.goals))
		w := &watched{goal: goal, key: r.row(len(r.goals[goal].Parameters))}
		if slices.ContainsFunc(r.demands, func(o *watched) bool {
			return o.goal == w.goal && slices.Equal(o.key, w.key)
		}) {
			continue
		}
		w.row = r.network.Demand(goal, r.ids(w.key))
		r.note("demand %d%v", goal, w.key)
		r.demands = append(r.demands, w)
	}
}

// compare compares every demanded result with the naive one, and now and then that
// of a network for one evaluation.
func (r *run) compare(c Config) error {
	for id, rel := range r.program.Relations {
		if !rel.Derived && !slices.EqualFunc(r.stored(c.Tables[id]), r.facts[rel.Name].Rows(),
			slices.Equal) {
			return fmt.Errorf("%s has %v, want %v", rel.Name, r.stored(c.Tables[id]),
				r.facts[rel.Name].Rows())
		}
	}
	for goal, told := range r.told {
		if told != nil && !maps.Equal(told, r.visible(goal)) {
			return fmt.Errorf("of goal %d was told %v, visible is %v", goal, told, r.visible(goal))
		}
	}
	db := naive.Derive(r.program, r.facts)
	for _, w := range r.demands {
		q := r.goals[w.goal]
		want, _ := db.Ask(q, w.key)
		if got := r.rows(r.network, w.goal, w.key); !slices.EqualFunc(got, want, slices.Equal) {
			return fmt.Errorf("goal %d at %v has %v, want %v", w.goal, w.key, got, want)
		}
	}
	if err := r.compareErrors(db); err != nil {
		return err
	}
	if r.IntN(3) > 0 {
		return nil
	}
	goal := r.IntN(len(r.goals))
	key := r.row(len(r.goals[goal].Parameters))
	c.Goals, c.Transient, c.OnResult = r.goals[goal:goal+1], true, nil
	n, err := New(c)
	if err != nil {
		return err
	}
	n.Demand(0, r.ids(key))
	if _, _, err := n.Settle(); err != nil {
		return err
	}
	want, _ := db.Ask(r.goals[goal], key)
	if got := r.rows(n, 0, key); !slices.EqualFunc(got, want, slices.Equal) {
		return fmt.Errorf("goal %d once at %v has %v, want %v", goal, key, got, want)
	}
	return nil
}

// compareErrors compares what a network tells of row errors with what they are, if
// everything were demanded, and for the goals' own ones with what is demanded.
func (r *run) compareErrors(db *naive.Database) error {
	for goal, q := range r.goals {
		_, want := db.Ask(q, make([]value.Value, len(q.Parameters)))
		for _, w := range r.demands {
			if w.goal == goal {
				_, doubt := db.Ask(q, w.key)
				want = max(want, doubt)
			}
		}
		got := naive.Doubt(r.network.doubt(goal))
		if got > want || got != naive.Sure {
			randomCounts["doubts"]++
		}
		if got > want {
			return fmt.Errorf("goal %d is doubted %d, want %d at most", goal, got, want)
		}
	}
	own := r.ownErrors()
	var err error
	total := 0
	r.network.Errors(func(e ClauseErrors) bool {
		total += e.Count
		if len(e.Samples) != min(e.Count, samplesMax) {
			err = fmt.Errorf("%d samples of %d row errors", len(e.Samples), e.Count)
		}
		if e.Clause.Rule < 0 {
			if e.Count != own[e.Clause.Goal] {
				err = fmt.Errorf("goal %d has %d row errors, want %d",
					e.Clause.Goal, e.Count, own[e.Clause.Goal])
			}
			own[e.Clause.Goal] = 0
		} else if f := db.Failures(e.Clause.Rule); e.Count > f.Body+f.Head {
			err = fmt.Errorf("rule %d has %d row errors, want %v at most",
				e.Clause.Rule, e.Count, f)
		}
		return true
	})
	if total != r.network.failing {
		err = fmt.Errorf("%d row errors, counted are %d", total, r.network.failing)
	}
	for goal, count := range own {
		if count != 0 {
			err = fmt.Errorf("goal %d has no row errors, want %d", goal, count)
		}
	}
	return err
}

// ownErrors returns how many row errors each goal's own computations have under the
// demands: those of a program in which the demands are facts and the goals rules.
func (r *run) ownErrors() []int {
	p, facts := *r.program, r.facts.Clone()
	p.Relations, p.Rules = slices.Clip(p.Relations), nil
	p.Rules = append(p.Rules, r.program.Rules...)
	for goal, q := range r.goals {
		name := fmt.Sprint("demand", goal)
		facts[name] = naive.Set{}
		for _, w := range r.demands {
			if w.goal == goal {
				facts[name].Add(w.key)
			}
		}
		id := analysis.RelationID(len(p.Relations))
		p.Relations = append(p.Relations, analysis.Relation{Name: name, Columns: q.Parameters},
			analysis.Relation{Name: fmt.Sprint("goal", goal), Derived: true})
		demand := analysis.Atom{Relation: id}
		for v := range q.Parameters {
			demand.Terms = append(demand.Terms, analysis.Term{Var: v})
		}
		rule := analysis.Rule{Head: analysis.Atom{Relation: id + 1}, Body: q.Body}
		rule.Body.Atoms = append([]analysis.Atom{demand}, q.Body.Atoms...)
		p.Rules = append(p.Rules, rule)
	}
	db := naive.Derive(&p, facts)
	var out []int
	for goal := range r.goals {
		out = append(out, db.Failures(len(r.program.Rules)+goal).Body)
	}
	return out
}

// stored returns the visible rows of a table, sorted.
func (r *run) stored(table *relation.Relation) [][]value.Value {
	set := naive.Set{}
	for id, ok := table.NextVisible(0); ok; id, ok = table.NextVisible(id + 1) {
		var row []value.Value
		for _, cell := range table.Row(id) {
			row = append(row, r.symbols.Value(cell))
		}
		set.Add(row)
	}
	return set.Rows()
}

// visible returns the visible rows of a goal's result, spelled.
func (r *run) visible(goal int) map[string]bool {
	out := map[string]bool{}
	table := r.network.Result(goal)
	for id, ok := table.NextVisible(0); ok; id, ok = table.NextVisible(id + 1) {
		out[fmt.Sprint(table.Row(id))] = true
	}
	return out
}

// onResult takes note of what is told of results.
func (r *run) onResult(goal int, row relation.RowID) {
	table := r.network.Result(goal)
	key := fmt.Sprint(table.Row(row))
	switch {
	case table.IsVisible(row) == r.told[goal][key]:
		panic("a row is told to be what it was")
	case table.IsVisible(row):
		r.told[goal][key] = true
	default:
		delete(r.told[goal], key)
	}
}

// rows returns the result of a goal at a key, sorted.
func (r *run) rows(n *Network, goal int, key []value.Value) [][]value.Value {
	set := naive.Set{}
	table, ids := n.Result(goal), r.ids(key)
	for id, ok := table.NextVisible(0); ok; id, ok = table.NextVisible(id + 1) {
		cells := table.Row(id)
		if !slices.Equal(cells[:len(ids)], ids) {
			continue
		}
		var row []value.Value
		for _, o := range n.Outputs(goal) {
			cell := o.Constant
			if o.Column >= 0 {
				cell = cells[o.Column]
			}
			row = append(row, r.symbols.Value(cell))
		}
		set.Add(row)
	}
	return set.Rows()
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
