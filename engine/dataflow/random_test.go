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
