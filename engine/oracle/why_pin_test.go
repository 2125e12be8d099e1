package oracle

import (
	"fmt"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/proof"
	"github.com/heddle-live/heddle/engine/value"
)

// pinned has a pinned state explained while the facts go and come back, and compares
// what is said with what is said of the present one.
func (c *explained) pinned(g *generator) error {
	opt := engine.WhyOptions{Limits: proof.Limits{Rows: 5}}
	e := c.run.engine
	pin, err := e.Pin(0)
	if err != nil {
		return err
	}
	defer pin.Close()
	id := analysis.RelationID(g.IntN(len(c.program.Relations)))
	row := make([]value.Value, len(c.program.Relations[id].Columns))
	if g.in(2) {
		for i, column := range c.program.Relations[id].Columns {
			row[i] = g.value(columnOf(column))
		}
	}
	q := ask(c.program, id, row)
	why, err := e.Why(q, nil, opt)
	if err != nil {
		return nil // row errors
	}
	not, err := e.WhyNot(q, nil, opt)
	if err != nil {
		return err
	}
	first, err := pin.Why(q, nil, opt)
	if err != nil {
		return err
	}
	second, err := pin.WhyNot(q, nil, opt)
	if err != nil {
		return err
	}
	facts := c.all()
	gone, revision := 0, c.run.revision
	for step := 0; ; step++ {
		done := first.Step(0)
		done = second.Step(0) && done
		// A few facts go at a time; at last all come back.
		var s analysis.Statement
		for range 1 + g.IntN(3) {
			if gone < len(facts) && !done {
				facts[gone].Delete = true
				s.Ops = append(s.Ops, facts[gone])
				gone++
			}
		}
		if done {
			for _, op := range facts[:gone] {
				op.Delete = false
				s.Ops = append(s.Ops, op)
			}
		}
		revision++
		_, err := e.Transact(revision, []analysis.Statement{s}, nil, engine.TransactOptions{})
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	c.run.revision = revision
	p, _, err := first.Explanation()
	if err != nil || p.String() != why.String() {
		return fmt.Errorf("why %s at a pin: %w\n%v\n%v", q.Text, err, p, why)
	}
	_, a, err := second.Explanation()
	if err != nil || a.String() != not.String() {
		return fmt.Errorf("why not %s at a pin: %w\n%v\n%v", q.Text, err, a, not)
	}
	return nil
}

// all returns all facts as insertions.
func (c *explained) all() []analysis.Op {
	var out []analysis.Op
	for _, rel := range c.program.Relations {
		for _, row := range c.run.facts[rel.Name].Rows() {
			out = append(out, analysis.Op{Relation: rel.Name, Row: row})
		}
	}
	return out
}
