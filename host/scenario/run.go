package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// Limits bound the work of a test as those of a server bound a graph's; 0 is no limit.
type Limits struct {
	QuerySteps uint64 // of a query or a statement, as engine.QueryOptions counts them
	WatchSteps uint64 // for a key's first rows
	Derived    engine.Limits
}

// Run plays the test on a fresh engine that has the program and, unless the test says
// otherwise, its seed.
func (t *Test) Run(limits Limits) Result {
	p := &player{engine: engine.New(nil), keys: map[string]*watchedKey{}, limits: limits}
	p.engine.SetLimits(limits.Derived)
	p.line, p.text = t.Line, "test "+t.Name
	if _, err := p.engine.Deploy(t.program, false); err != nil {
		p.fail("%v", err)
		return p.result
	}
	p.revision = 1
	if !t.seedless && !p.seed(t.program) {
		return p.result
	}
	for i := range t.steps {
		s := &t.steps[i]
		p.line, p.text = s.line, s.text
		if !p.do(s) {
			break
		}
	}
	return p.result
}

// player is a test that is played.
type player struct {
	engine   *engine.Engine
	revision uint64
	limits   Limits
	keys     map[string]*watchedKey
	clock    int64 // the row of the clock, if hasClock
	hasClock bool

	outcome engine.Outcome // of the last write or call
	refusal error          // of the same

	line   int // of the present step
	text   string
	result Result
}

// watchedKey is a watched key with what changed since it was last looked at.
type watchedKey struct {
	*engine.Key
	parts []map[string]row // by part; rows with their signs, net
}

func (p *player) fail(format string, args ...any) {
	p.result.Failures = append(p.result.Failures, Failure{
		Line: p.line, Step: p.text, Text: fmt.Sprintf(format, args...),
	})
}

func (p *player) seed(program *analysis.Program) bool {
	ops := make([]analysis.Op, len(program.Seed))
	for i, f := range program.Seed {
		ops[i] = analysis.Op{Relation: f.Relation, Row: f.Row}
	}
	if len(ops) == 0 {
		return true
	}
	if !p.transact(engine.Plain(ops), nil) {
		p.fail("the seed is refused: %v", p.refusal)
		return false
	}
	return true
}

// transact commits one transaction, and reports whether it was not refused.
func (p *player) transact(statements []analysis.Statement, parameters []value.Value) bool {
	for i := range statements {
		if p.refusal = p.engine.Check(statements[i].Ops); p.refusal != nil {
			return false
		}
	}
	p.outcome, p.refusal = p.engine.Transact(p.revision+1, statements, parameters,
		engine.TransactOptions{Budget: p.limits.QuerySteps})
	if p.refusal != nil {
		return false
	}
	p.revision++
	p.engine.Changes(func(k *engine.Key, _ uint64, parts []engine.Change) {
		for i := range parts {
			k.Owner.(*watchedKey).add(i, &parts[i])
		}
	})
	return true
}

// add counts what entered and left a part.
func (w *watchedKey) add(part int, c *engine.Change) {
	net, width := w.parts[part], len(w.Columns(part))
	note := func(sign byte, flat []value.Value) {
		for ; len(flat) > 0; flat = flat[width:] {
			r := row{sign: sign, cells: slices.Clone(flat[:width])}
			id := spell("", r.cells)
			if _, back := net[id]; back {
				delete(net, id) // it went and came, or came and went
				continue
			}
			net[id] = r
		}
	}
	note('-', c.Retract)
	note('+', c.Insert)
}

// do plays a step, and reports whether the next has a meaning.
func (p *player) do(s *step) bool {
	switch s.verb {
	case given, write, call:
		return p.write(s)
	case watch:
		return p.watch(s)
	case unwatch:
		id := s.target.id()
		p.engine.Unwatch(p.keys[id].Key)
		delete(p.keys, id)
	case clock:
		return p.tick(s)
	case expectRows:
		return p.rows(s)
	case expectChanges:
		k := p.keys[s.target.id()]
		net := k.parts[s.target.part]
		k.parts[s.target.part] = map[string]row{}
		p.compare(s.rows, slices.Collect(maps.Values(net)))
	case expectErrors:
		p.errors(s)
	case expectRefused:
		if text := p.refusal.Error(); !strings.Contains(text, s.message) {
			p.fail("it was refused for another reason: %s", text)
		}
	case expectWritten:
		if p.outcome.Inserted != s.inserted || p.outcome.Deleted != s.deleted {
			p.fail("%d inserted, %d deleted", p.outcome.Inserted, p.outcome.Deleted)
		}
	}
	return true
}

func (p *player) write(s *step) bool {
	switch ok := p.transact(s.statements, s.parameters); {
	case ok && s.refused:
		p.fail("it was not refused: %d inserted, %d deleted", p.outcome.Inserted,
			p.outcome.Deleted)
		return false
	case !ok && !s.refused:
		p.fail("it was refused: %v", p.refusal)
		return false
	}
	if s.verb == given {
		p.forget()
	}
	return true
}

// forget takes what is given as no change.
func (p *player) forget() {
	for _, k := range p.keys {
		for i := range k.parts {
			k.parts[i] = map[string]row{}
		}
	}
}

func (p *player) watch(s *step) bool {
	k, err := p.engine.WatchWithin(s.target.view, s.target.key, p.limits.WatchSteps)
	if err != nil {
		p.fail("it was refused: %v", err)
		return false
	}
	w := &watchedKey{Key: k, parts: make([]map[string]row, k.Parts())}
	for i := range w.parts {
		w.parts[i] = map[string]row{}
	}
	k.Owner = w
	p.keys[s.target.id()] = w
	return true
}

// tick replaces the row of the clock, as a graph does.
func (p *player) tick(s *step) bool {
	var ops []analysis.Op
	if p.hasClock {
		old := []value.Value{value.OfTimestamp(p.clock)}
		ops = append(ops, analysis.Op{Relation: clockName, Delete: true, Row: old})
	}
	now := []value.Value{value.OfTimestamp(s.millis)}
	ops = append(ops, analysis.Op{Relation: clockName, Row: now})
	if !p.transact(engine.Plain(ops), nil) {
		p.fail("it was refused: %v", p.refusal)
		return false
	}
	p.clock, p.hasClock = s.millis, true
	return true
}

// rows compares the rows of a key or a query with those that are expected.
func (p *player) rows(s *step) bool {
	t := &s.target
	if t.query != nil {
		answer, err := p.engine.Query(t.query, nil,
			engine.QueryOptions{Budget: p.limits.QuerySteps})
		if err != nil {
			p.fail("it was refused: %v", err)
			return true
		}
		rows, doubt := split(answer.Rows, len(answer.Columns)), engine.Exact
		if answer.Errors != nil {
			doubt = engine.Incomplete
		}
		p.doubt(s.doubt, doubt, answer.Errors)
		if p.compare(s.rows, rows) && len(t.query.Order) > 0 {
			p.compareOrder(s.rows, rows)
		}
		return true
	}
	k, watched := p.keys[t.id()]
	if !watched {
		fresh, err := p.engine.WatchWithin(t.view, t.key, p.limits.WatchSteps)
		if err != nil {
			p.fail("it was refused: %v", err)
			return true
		}
		k = &watchedKey{Key: fresh}
		defer p.engine.Unwatch(fresh)
	}
	doubt, cause := p.engine.Doubt(k.Key, t.part)
	p.doubt(s.doubt, doubt, cause)
	p.compare(s.rows, split(p.engine.Rows(k.Key, t.part, nil), len(k.Columns(t.part))))
	return true
}

// doubtNames are what files call the doubts.
var doubtNames = [...]string{
	engine.Exact: "exact", engine.Incomplete: "incomplete", engine.Stale: "stale",
}

// doubt fails if row errors do something else to rows than is expected.
func (p *player) doubt(want, got engine.Doubt, cause *engine.RuleErrors) {
	if want == got {
		return
	}
	why := ""
	if cause != nil {
		why = ": " + strings.Join(errorTexts(cause), "; ")
	}
	p.fail("the rows are %s%s", doubtNames[got], why)
}

// errorTexts words the row errors of a clause that are known.
func errorTexts(e *engine.RuleErrors) []string {
	clause := e.Rule
	switch {
	case clause != "":
	case e.View != "":
		clause = "view " + e.View
	default:
		clause = "the query"
	}
	var texts []string
	for _, sample := range e.Samples {
		var text strings.Builder
		text.WriteString(clause + ": " + sample.Message)
		for i, name := range sample.Variables {
			if i == 0 {
				text.WriteString(" at ")
			} else {
				text.WriteString(", ")
			}
			text.WriteString(name + " = " + sample.Values[i].String())
		}
		texts = append(texts, text.String())
	}
	return texts
}

// errors compares the row errors that there are with those that are expected.
func (p *player) errors(s *step) {
	var texts, lines []string
	for _, e := range p.engine.Errors() {
		texts = append(texts, errorTexts(&e)...)
	}
	for _, message := range s.messages {
		meant := func(text string) bool { return strings.Contains(text, message) }
		if !slices.ContainsFunc(texts, meant) {
			lines = append(lines, "missing     "+value.OfString(message).String())
		}
	}
	for _, text := range texts {
		meant := func(message string) bool { return strings.Contains(text, message) }
		if !slices.ContainsFunc(s.messages, meant) {
			lines = append(lines, "unexpected  "+text)
		}
	}
	if lines != nil {
		p.fail("%s", strings.Join(lines, "\n"))
	}
}

func split(flat []value.Value, width int) []row {
	var rows []row
	for ; len(flat) > 0; flat = flat[width:] {
		rows = append(rows, row{cells: flat[:width]})
	}
	return rows
}

// compare fails if two sets of rows differ, and reports whether they do not.
func (p *player) compare(want, got []row) bool {
	text := difference(want, got)
	if text != "" {
		p.fail("%s", text)
	}
	return text == ""
}

// compareOrder fails if the same rows come in another order.
func (p *player) compareOrder(want, got []row) {
	for i := range want {
		if compareRows(want[i], got[i]) != 0 {
			p.fail("%s", inOrder(got))
			return
		}
	}
}
