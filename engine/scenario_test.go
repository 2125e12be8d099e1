package engine

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

var update = flag.Bool("update", false, "rewrite the expected lines of testdata/scenarios")

// TestScenarios plays the files of testdata/scenarios. Each is a list of commands
// with the lines they should answer, marked "> ":
//
//	program        deploys the lines up to the next "."; answers the diff or error
//	program!       the same, with leave to lose data
//	watch V KEY…   answers the rows
//	unwatch V KEY…
//	rows V KEY…
//	write FACTS    applies a transaction, split at "; "; answers the changes
//	hold FACTS     applies a transaction and leaves its changes for later
//	query Q        answers the rows
//	why Q          answers a proof of the first rows, at most 2
//	why-not Q      answers why there are none
//	explain NAME   answers the plan of a view or relation
//	profile        begins, or ends, to count what plans do
//	stats          answers the number of facts, watched keys and derived rows
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios: ", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(string(text))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("the scenario plays as\n%s", got)
			}
		})
	}
}

// player is a scenario being played.
type player struct {
	engine   *Engine
	keys     map[string]*Key
	revision uint64
}

// play returns the scenario's text with the answers that the engine gives.
func play(text string) string {
	p := &player{engine: New(nil), keys: map[string]*Key{}}
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for len(lines) > 0 {
		line := lines[0]
		lines = lines[1:]
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		command, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(command, "program") {
			var source []string
			for len(lines) > 0 && lines[0] != "." {
				source = append(source, lines[0])
				lines = lines[1:]
			}
			lines = lines[1:]
			rest = strings.Join(source, "\n")
			fmt.Fprintf(&out, "%s\n.\n", rest)
		}
		for _, answer := range p.do(command, rest) {
			fmt.Fprintln(&out, "> "+answer)
		}
	}
	return out.String()
}

func (p *player) do(command, rest string) []string {
	if (command == "unwatch" || command == "rows") && p.keys[rest] == nil {
		return []string{"not watched"}
	}
	switch command {
	case "program", "program!":
		return p.deploy(rest, command == "program!")
	case "watch":
		view, key := parseKey(rest)
		k, err := p.engine.Watch(view, key)
		if err != nil {
			return []string{err.Error()}
		}
		p.keys[rest] = k
		return append(p.rows(k), p.changes()...)
	case "unwatch":
		p.engine.Unwatch(p.keys[rest])
		return p.changes()
	case "rows":
		return p.rows(p.keys[rest])
	case "write", "hold":
		answer := p.write(rest)
		if command == "write" {
			answer = append(answer, p.changes()...)
		}
		return answer
	case "call":
		return append(p.call(rest), p.changes()...)
	case "errors":
		return p.errors()
	case "query":
		return p.query(rest)
	case "explain":
		plan, err := p.engine.Explain(rest)
		if err != nil {
			return []string{err.Error()}
		}
		return strings.Split(strings.TrimSuffix(plan.String(), "\n"), "\n")
	case "profile":
		if !p.engine.StartProfile() {
			p.engine.EndProfile()
		}
		return nil
	case "why", "why-not":
		return p.why(rest, command == "why")
	case "stats":
		s := p.engine.Stats()
		return []string{fmt.Sprintf("%d facts, %d watched keys, %d derived rows",
			s.Facts, s.WatchedKeys, s.DerivedRows)}
	case "", "#":
		return nil
	}
	return []string{"no such command"}
}

// why explains a query's rows or their absence.
func (p *player) why(text string, present bool) []string {
	q, err := p.parseQuery(text)
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	opt := WhyOptions{Limits: proof.Limits{Rows: 2, Nodes: 30, Matches: 2}, Budget: 100_000}
	var out fmt.Stringer
	if present {
		out, err = p.engine.Why(q, nil, opt)
	} else {
		out, err = p.engine.WhyNot(q, nil, opt)
	}
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// parseKey reads a view's name and a key of ints and quoted strings.
func parseKey(s string) (string, []value.Value) {
	fields := strings.Fields(s)
	var key []value.Value
	for _, f := range fields[1:] {
		var i int
		if _, err := fmt.Sscanf(f, "%d", &i); err == nil {
			key = append(key, value.OfInt(int64(i)))
			continue
		}
		key = append(key, value.OfString(strings.Trim(f, `"`)))
	}
	return fields[0], key
}

func (p *player) deploy(source string, allowLoss bool) []string {
	file, err := parse.Program(source)
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	program, err := analysis.Analyse(file, source)
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	preview, _ := p.engine.Preview(program, allowLoss)
	d, err := p.engine.Deploy(program, allowLoss)
	if err != nil {
		return []string{err.Error()}
	}
	if !slices.Equal(preview.Rows, d.Rows) {
		return []string{fmt.Sprintf("the preview counts %v, the deployment %v", preview.Rows, d.Rows)}
	}
	p.revision++
	var out []string
	list := func(what string, names []string) {
		if len(names) > 0 {
			out = append(out, what+": "+strings.Join(names, "; "))
		}
	}
	list("added relations", d.AddedRelations)
	for _, r := range d.DroppedRelations {
		out = append(out, fmt.Sprintf("dropped relation: %s with %d rows", r.Name, r.Rows))
	}
	list("changed relations", d.ChangedRelations)
	list("added rules", d.AddedRules)
	list("dropped rules", d.DroppedRules)
	list("changed rules", d.ChangedRules)
	list("added views", d.AddedViews)
	list("dropped views", d.DroppedViews)
	list("changed views", d.ChangedViews)
	for _, r := range d.Rows {
		out = append(out, fmt.Sprintf("%s: %d keys end, %d rows enter, %d leave",
			r.View, r.Keys, r.Entered, r.Left))
	}
	for _, k := range d.LostKeys {
		out = append(out, fmt.Sprint("lost key: ", k.View(), k.Values()))
	}
	return append(out, p.changes()...)
}

func (p *player) write(facts string) []string {
	tree, err := parse.Transaction(strings.ReplaceAll(facts, "; ", "\n"))
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	statements, err := analysis.CheckTransaction(p.engine.Program(), tree)
	for i := range statements {
		err = errors.Join(err, p.engine.Check(statements[i].Ops))
	}
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	return p.transact(statements, nil)
}

// call executes an action and shows what it did.
func (p *player) call(text string) []string {
	name, key := parseKey(text)
	action := p.engine.Program().ActionNamed(name)
	if action == nil {
		return []string{"no action " + name}
	}
	return p.transact(action.Statements, key)
}

func (p *player) transact(statements []analysis.Statement, key []value.Value) []string {
	result, err := p.engine.Transact(p.revision+1, statements, key,
		TransactOptions{Budget: scenarioBudget})
	if err != nil {
		return []string{"refused: " + err.Error()}
	}
	p.revision++
	var out []string
	for _, s := range result.Statements {
		out = append(out, fmt.Sprintf("%d rows: +%d -%d", s.Rows, s.Inserted, s.Deleted))
	}
	return out
}

var doubts = map[Doubt]string{Incomplete: " (incomplete)", Stale: " (stale)"}

// errors lists what cannot be computed.
func (p *player) errors() []string {
	var out []string
	for _, e := range p.engine.Errors() {
		var line strings.Builder
		line.WriteString(fmt.Sprintf("%s%s at %d:%d: %d", e.Rule, e.View, e.Pos.Line, e.Pos.Column, e.Count))
		for _, s := range e.Samples {
			line.WriteString(fmt.Sprintf("; %s at", s.Message))
			for i, name := range s.Variables {
				line.WriteString(fmt.Sprintf(" %s=%v", name, s.Values[i]))
			}
		}
		out = append(out, line.String())
	}
	return out
}

// scenarioBudget is how many steps a condition may take.
const scenarioBudget = 1000

func (p *player) changes() []string {
	var out []string
	p.engine.Changes(func(k *Key, revision uint64, parts []Change) {
		var line strings.Builder
		line.WriteString(fmt.Sprintf("%s%v at %d:", k.View(), k.Values(), revision))
		for i, c := range parts {
			if name := k.family.view.Parts[i].Name; name != "" {
				line.WriteString(" " + name)
			}
			if len(c.Insert) > 0 {
				line.WriteString(" entered " + showPart(k, i, c.Insert))
			}
			if len(c.Retract) > 0 {
				line.WriteString(" left " + showPart(k, i, c.Retract))
			}
			line.WriteString(doubts[c.Doubt])
		}
		out = append(out, line.String())
	})
	return out
}

// rows shows the rows of a key, a line for each part.
func (p *player) rows(k *Key) []string {
	var out []string
	for i, part := range k.family.view.Parts {
		doubt, _ := p.engine.Doubt(k, i)
		line := showPart(k, i, p.engine.Rows(k, i, nil)) + doubts[doubt]
		if part.Name != "" {
			line = part.Name + " " + line
		}
		out = append(out, line)
	}
	return out
}

func (p *player) parseQuery(text string) (*analysis.Query, error) {
	tree, err := parse.Query(text)
	if err != nil {
		return nil, err
	}
	return analysis.AnalyseQuery(p.engine.Program(), tree)
}

func (p *player) query(text string) []string {
	q, err := p.parseQuery(text)
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	r, err := p.engine.Query(q, nil, QueryOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	doubt := ""
	if r.Errors != nil {
		doubt = doubts[Incomplete]
	}
	k := &Key{family: &family{view: &analysis.View{Parts: []analysis.Part{{Query: *q}}}}}
	return []string{show(k, r.Rows) + doubt}
}
