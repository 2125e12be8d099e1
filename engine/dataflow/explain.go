package dataflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/relation"
)

// Explanation tells how a network evaluates a part of its program.
type Explanation struct {
	Predicates []PredicateInfo
	Indexes    []IndexInfo
	Rules      []RuleInfo
	Notes      []string // what was done to the rules or refused, and why
}

// explainedRules is how many rules an explanation has at most: it is made between two
// commits.
const explainedRules = 200

// PredicateInfo is a set of rows that the network keeps, or a base relation.
type PredicateInfo struct {
	Name string
	What string // in words
	Rows int
}

// IndexInfo is an index that the plans use.
type IndexInfo struct {
	Of      string // the predicate's name
	Columns []string
	Keys    int
	Rows    int
}

// RuleInfo is a rule as it is evaluated: one clause becomes several.
type RuleInfo struct {
	Clause Clause
	Text   string
	Plans  []PlanInfo
}

// PlanInfo is what a network does when a row of one of a rule's atoms comes or goes.
type PlanInfo struct {
	From  string // the atom
	Steps []StepInfo
	// Instead is done where the rows of Driver are fewer than those that the first step
	// would find.
	Instead *PlanInfo
	Driver  string
	// Counted while a profile is taken: how often the plan ran and how long that took.
	Runs, Nanos uint64
}

// StepInfo is a step of a plan.
type StepInfo struct {
	Text   string
	About  float64 // how many rows the step finds on average; negative for a test
	Passed uint64  // counted while a profile is taken: how often the plan went on
}

// addRule remembers whose variables the registers of a rule are.
func (w *rewriter) addRule(r *rule) {
	r.variables = w.body.Variables
	w.transformer.addRule(r)
}

// Subject is what an explanation is of: goals with all that they depend on, or one
// relation.
type Subject struct {
	Goals    []int
	Relation analysis.RelationID // if there are no goals
}

// Explain tells how the network evaluates a subject. Names gives the goals names.
func (n *Network) Explain(s Subject, names func(goal int) string) *Explanation {
	x := &explainer{
		network: n, subject: s, goalName: names, out: &Explanation{},
		names: make(map[*predicate]string), seen: make(map[*predicate]bool),
		patterns: make(map[*predicate]pattern),
		asked:    make(map[analysis.RelationID][]pattern), listed: make(map[*relation.Index]bool),
	}
	x.reach()
	x.name()
	x.rules()
	x.sets()
	x.notes()
	return x.out
}

// explainer makes an explanation.
type explainer struct {
	network  *Network
	subject  Subject
	goalName func(int) string
	out      *Explanation
	names    map[*predicate]string
	seen     map[*predicate]bool // those that the explanation mentions
	used     []*relation.Index
	usedOf   []*predicate
	listed   map[*relation.Index]bool          // those of used
	patterns map[*predicate]pattern            // whose demand or rows a predicate is
	asked    map[analysis.RelationID][]pattern // of a relation
	relevant []bool                            // relations that the subject depends on
}

// reach finds the relations that are of interest.
func (x *explainer) reach() {
	n := x.network
	x.relevant = make([]bool, len(n.program.Relations))
	var path []analysis.RelationID
	follow := func(b *analysis.Body) {
		for _, atoms := range [][]analysis.Atom{b.Atoms, b.Negations} {
			for _, a := range atoms {
				path = append(path, a.Relation)
			}
		}
	}
	for _, g := range x.subject.Goals {
		follow(&n.queries[g].Body)
	}
	if len(x.subject.Goals) == 0 {
		x.relevant[x.subject.Relation] = true
	}
	for len(path) > 0 {
		id := path[len(path)-1]
		path = path[:len(path)-1]
		if x.relevant[id] {
			continue
		}
		x.relevant[id] = true
		for _, i := range n.clauses[id] {
			follow(&n.program.Rules[i].Body)
		}
	}
}

// isShown reports whether a rule belongs to the subject; for a base relation those
// that read it do.
func (x *explainer) isShown(r *rule) bool {
	if len(x.subject.Goals) > 0 {
		if r.clause.Rule < 0 {
			return slices.Contains(x.subject.Goals, r.clause.Goal)
		}
		return x.relevant[x.network.program.Rules[r.clause.Rule].Head.Relation]
	}
	if p := x.network.inputs[x.subject.Relation]; p != nil {
		return slices.ContainsFunc(r.body, func(a atom) bool { return a.predicate == p })
	}
	isOf := func(p *predicate) bool { return p.of == x.subject.Relation }
	return isOf(r.head.predicate) || r.clause.Rule >= 0 &&
		x.network.program.Rules[r.clause.Rule].Head.Relation == x.subject.Relation
}

// name names all predicates.
func (x *explainer) name() {
	n := x.network
	for id, p := range n.inputs {
		x.names[p] = n.program.Relations[id].Name
	}
	for p, d := range n.patterns {
		name := n.program.Relations[p.relation].Name + "/" + letters(p.bound,
			len(n.program.Relations[p.relation].Columns))
		x.names[d.demand], x.names[d.rows] = "?"+name, name
		x.patterns[d.demand], x.patterns[d.rows] = p, p
		x.asked[p.relation] = append(x.asked[p.relation], p)
	}
	counts := map[string]int{}
	for _, p := range n.predicates {
		if x.names[p] != "" {
			continue
		}
		name := ""
		switch {
		case p.kind == root:
			name = "?" + x.goalName(p.goal)
		case p.kind == result:
			name = x.goalName(p.goal)
		case p.kind == failure:
			name = "failed"
		case p.kind == demand:
			name = n.program.Relations[p.of].Name + "/reached"
		case p.aggregation != nil:
			name = "groups"
		case p.window != nil:
			name = "chosen"
		default:
			name = "between"
		}
		if counts[name]++; counts[name] > 1 {
			name += fmt.Sprint(counts[name])
		}
		x.names[p] = name
	}
}

// letters spells a binding pattern: b for a bound column, f for a free one.
func letters(bound relation.Columns, columns int) string {
	text := make([]byte, columns)
	for c := range text {
		if text[c] = 'f'; bound.Has(c) {
			text[c] = 'b'
		}
	}
	return string(text)
}

// rules explains the rules of the subject: goals first, then clauses in order.
func (x *explainer) rules() {
	var shown []*rule
	for _, r := range x.network.rules {
		if x.isShown(r) {
			shown = append(shown, r)
		}
	}
	slices.SortStableFunc(shown, func(a, b *rule) int { return a.clause.Rule - b.clause.Rule })
	if left := len(shown) - explainedRules; left > 0 {
		shown = shown[:explainedRules]
		x.out.Notes = append(x.out.Notes, fmt.Sprintf("%d rules more are not shown", left))
	}
	at := make(map[*rule]int)
	for _, r := range shown {
		at[r] = len(x.out.Rules)
		x.out.Rules = append(x.out.Rules, RuleInfo{Clause: r.clause, Text: x.rule(r)})
	}
	for _, p := range x.network.predicates {
		for _, pl := range p.readers {
			i, ok := at[pl.rule]
			if !ok || len(x.subject.Goals) == 0 && !x.isRead(p) {
				continue
			}
			x.out.Rules[i].Plans = append(x.out.Rules[i].Plans, x.plan(pl, p))
		}
	}
	x.out.Rules = slices.DeleteFunc(x.out.Rules, func(r RuleInfo) bool {
		return len(x.subject.Goals) == 0 && len(r.Plans) == 0
	})
}

// isRead reports whether plans from rows of a predicate are of interest: where a base
// relation is the subject, only its own.
func (x *explainer) isRead(p *predicate) bool {
	input := x.network.inputs[x.subject.Relation]
	return input == nil || p == input
}

func (x *explainer) plan(pl *plan, from *predicate) PlanInfo {
	out := PlanInfo{From: x.source(pl, from), Runs: pl.meter.runs, Nanos: pl.meter.nanos}
	for i := range pl.steps {
		s := &pl.steps[i]
		if s.kind == stepMeter || s.kind == stepTimer {
			continue
		}
		info := StepInfo{Text: x.step(pl.rule, s), About: x.about(s)}
		if i+1 < len(pl.steps) && pl.steps[i+1].kind == stepMeter {
			info.Passed = pl.steps[i+1].meter.passed
		}
		out.Steps = append(out.Steps, info)
	}
	if pl.other != nil {
		other := x.plan(pl.other, from)
		out.Instead, out.Driver = &other, x.names[pl.driver]
	}
	return out
}

// source spells the atom that a plan starts from.
func (x *explainer) source(pl *plan, from *predicate) string {
	x.seen[from] = true
	terms := slices.Repeat([]operand{{register: anything}}, from.arity)
	for _, c := range pl.constants {
		terms[c.column] = c.operand
	}
	for _, list := range [][]columnRegister{pl.binds, pl.repeats} {
		for _, b := range list {
			terms[b.column] = operand{register: b.register}
		}
	}
	return x.atom(pl.rule, atom{predicate: from, terms: terms, negated: pl.flips})
}

// step says what a step does.
func (x *explainer) step(r *rule, s *step) string {
	switch s.kind {
	case stepFilter:
		return "test " + x.filter(r, s.filter)
	case stepCompute:
		return "compute " + x.computation(r, s.computation)
	}
	kind, none := s.kind, ""
	if s.kind == stepAbsent {
		kind, none = s.access, "no row in "
	}
	text := x.atom(r, atom{predicate: s.predicate, terms: x.terms(s, kind)})
	x.seen[s.predicate] = true
	switch kind {
	case stepProbe:
		text = cmpOr(none, "find ") + text
	case stepLookup:
		if !x.listed[s.index] {
			x.listed[s.index] = true
			x.used, x.usedOf = append(x.used, s.index), append(x.usedOf, s.predicate)
		}
		text = cmpOr(none, "look up ") + text + " by " +
			strings.Join(x.columns(s.predicate, s.index.Columns()), ", ")
	case stepScan:
		text = cmpOr(none, "scan ") + text
	}
	if s.exclude {
		text += ", without the row itself"
	}
	return text
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// terms puts together what a step knows of its atom.
func (x *explainer) terms(s *step, kind stepKind) []operand {
	terms := slices.Repeat([]operand{{register: anything}}, s.predicate.arity)
	k := 0
	for c := range terms {
		if kind == stepProbe || kind == stepLookup && s.index.Columns().Has(c) {
			terms[c] = s.key[k]
			k++
		}
	}
	for _, c := range s.checks {
		terms[c.column] = c.operand
	}
	for _, list := range [][]columnRegister{s.binds, s.repeats} {
		for _, b := range list {
			terms[b.column] = operand{register: b.register}
		}
	}
	return terms
}

// about estimates how many rows a step finds.
func (x *explainer) about(s *step) float64 {
	switch s.kind {
	case stepLookup:
		if keys := s.index.Keys(); keys > 0 {
			return float64(s.predicate.table.Len()) / float64(keys)
		}
		return 0
	case stepScan:
		return float64(s.predicate.table.Len())
	}
	return -1
}

func (x *explainer) operand(r *rule, o operand) string {
	switch {
	case o.register == anything:
		return "_"
	case o.register == constant:
		return x.network.symbols.Value(o.constant).String()
	case o.register < len(r.variables) && r.variables[o.register].Name != "":
		return r.variables[o.register].Name
	}
	return fmt.Sprintf("V%d", o.register)
}

func (x *explainer) operands(r *rule, terms []operand) string {
	texts := make([]string, len(terms))
	for i, o := range terms {
		texts[i] = x.operand(r, o)
	}
	return strings.Join(texts, ", ")
}

func (x *explainer) atom(r *rule, a atom) string {
	text := x.names[a.predicate] + "(" + x.operands(r, a.terms) + ")"
	if a.negated {
		text = "!" + text
	}
	return text
}

var comparisonTexts = [...]string{eq: "=", ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">="}

func (x *explainer) filter(r *rule, f filter) string {
	return x.operand(r, f.left) + " " + comparisonTexts[f.op] + " " + x.operand(r, f.right)
}

func (x *explainer) computation(r *rule, c computation) string {
	out := x.operand(r, operand{register: c.out}) + " = "
	if strings.Contains("+-*/%", c.function.Name) {
		return out + x.operand(r, c.args[0]) + " " + c.function.Name + " " + x.operand(r, c.args[1])
	}
	return out + c.function.Name + "(" + x.operands(r, c.args) + ")"
}

func (x *explainer) rule(r *rule) string {
	var body []string
	x.seen[r.head.predicate] = true
	if a := r.head.predicate.aggregation; a != nil {
		x.seen[a.output.predicate] = true
	}
	for _, a := range r.body {
		x.seen[a.predicate] = true
		body = append(body, x.atom(r, a))
	}
	for _, f := range r.filters {
		body = append(body, x.filter(r, f))
	}
	for _, c := range r.computations {
		body = append(body, x.computation(r, c))
	}
	for _, f := range r.late {
		body = append(body, x.filter(r, f))
	}
	return x.atom(r, r.head) + " <- " + strings.Join(body, ", ")
}

// columns names the columns of a set.
func (x *explainer) columns(p *predicate, set relation.Columns) []string {
	var columns []analysis.Column
	for id, input := range x.network.inputs {
		if input == p {
			columns = x.network.program.Relations[id].Columns
		}
	}
	if p.kind == derived && p.of >= 0 && p.aggregation == nil {
		columns = x.network.program.Relations[p.of].Columns
	}
	var out []string
	for c := range p.arity {
		switch {
		case !set.Has(c):
		case c < len(columns):
			out = append(out, columns[c].Name)
		default:
			out = append(out, fmt.Sprintf("column %d", c+1))
		}
	}
	return out
}

// sets lists the predicates and indexes that the explanation mentions.
func (x *explainer) sets() {
	for _, p := range x.network.predicates {
		if x.seen[p] {
			x.out.Predicates = append(x.out.Predicates, PredicateInfo{
				Name: x.names[p], What: x.what(p), Rows: p.table.Len(),
			})
		}
	}
	for i, ix := range x.used {
		p := x.usedOf[i]
		x.out.Indexes = append(x.out.Indexes, IndexInfo{
			Of: x.names[p], Columns: x.columns(p, ix.Columns()), Keys: ix.Keys(),
			Rows: p.table.Len(),
		})
	}
}

// what says what the rows of a predicate are.
func (x *explainer) what(p *predicate) string {
	if pattern, ok := x.patterns[p]; ok {
		d, r := x.network.patterns[pattern], &x.network.program.Relations[pattern.relation]
		asked := strings.Join(x.columns(d.rows, pattern.bound), ", ")
		switch {
		case p == d.demand && pattern.bound == 0:
			return "whether somebody needs all of " + r.Name
		case p == d.demand:
			return "values of " + asked + " for which somebody needs " + r.Name
		case pattern.bound == 0:
			return "all rows of " + r.Name
		}
		return "rows of " + r.Name + " asked for by " + asked
	}
	switch {
	case p.kind == base:
		return "facts"
	case p.kind == root && x.network.transient:
		return "what is asked"
	case p.kind == result && x.network.transient:
		return "the answer"
	case p.kind == root:
		return "watched keys"
	case p.kind == result:
		return "rows of watched keys"
	case p.kind == failure:
		return "matches that cannot be computed"
	case p.kind == demand:
		return "what is reached from where, by right-linear recursion"
	case p.aggregation != nil:
		return "groups of an aggregate"
	case p.window != nil:
		return "rows among which an aggregate chooses"
	}
	return "matches of the first part of a body, before what uses its computations"
}
