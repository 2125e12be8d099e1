package analysis

import (
	"fmt"
	"strings"

	"github.com/heddle-live/heddle/engine/parse"
)

// edge says that a relation is derived from another.
type edge struct {
	to  RelationID
	not bool // through a negation
	all bool // through an aggregate, which needs all rows
	pos Position
}

// components are the strongly connected components of the relations, by Tarjan's
// algorithm.
type components struct {
	edges  [][]edge
	index  []int // order of the first visit, from 1
	low    []int
	stack  []RelationID
	of     []int // the component of each relation, -1 while on the stack
	visits int
	count  int
}

func findComponents(edges [][]edge) []int {
	c := components{
		edges: edges, index: make([]int, len(edges)), low: make([]int, len(edges)),
		of: make([]int, len(edges)),
	}
	for id := range edges {
		if c.index[id] == 0 {
			c.visit(RelationID(id))
		}
	}
	return c.of
}

func (c *components) visit(id RelationID) {
	c.visits++
	c.index[id], c.low[id], c.of[id] = c.visits, c.visits, -1
	c.stack = append(c.stack, id)
	for _, e := range c.edges[id] {
		if c.index[e.to] == 0 {
			c.visit(e.to)
			c.low[id] = min(c.low[id], c.low[e.to])
		} else if c.of[e.to] < 0 {
			c.low[id] = min(c.low[id], c.index[e.to])
		}
	}
	if c.low[id] != c.index[id] {
		return
	}
	for {
		top := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		c.of[top] = c.count
		if top == id {
			break
		}
	}
	c.count++
}

// checkStrata fails for relations that depend on the negation or the aggregate of
// themselves, one error for each circle.
func (a *analyser) checkStrata(*parse.File) {
	edges := make([][]edge, len(a.program.Relations))
	for _, c := range a.rules {
		head := a.program.names[c.head.Relation.Text]
		all := false
		for _, t := range c.head.Terms {
			all = all || t.Kind == parse.Aggregated
		}
		for _, l := range c.literals {
			if l.atom != nil {
				edges[head] = append(edges[head], edge{
					to: l.relation, not: l.negated, all: all, pos: l.atom.Relation.Pos,
				})
			}
		}
	}
	a.component = findComponents(edges)
	reported := map[int]bool{}
	for from := range edges {
		for _, e := range edges[from] {
			component := a.component[from]
			if (e.not || e.all) && component == a.component[e.to] && !reported[component] {
				reported[component] = true
				a.unstratified(edges, RelationID(from), e)
			}
		}
	}
}

// unstratified words the error of an edge that closes a circle, and shows the circle.
func (a *analyser) unstratified(edges [][]edge, from RelationID, e edge) {
	path := circle(edges, e.to, from)
	steps := []string{a.step(from, e)}
	at := e.to
	for _, next := range path {
		steps = append(steps, a.step(at, next))
		at = next.to
	}
	what := "the negation of " + a.program.Relations[e.to].Name
	hint := "what is negated must be known before: negate a relation that does not depend on "
	if !e.not {
		what = "an aggregate over " + a.program.Relations[e.to].Name
		hint = "what is aggregated must be known before: aggregate over a relation that does not " +
			"depend on "
	}
	a.fail(e.pos, hint+a.program.Relations[from].Name, "%s depends on itself through %s: %s",
		a.program.Relations[from].Name, what, strings.Join(steps, ", "))
}

// step words an edge: "p needs !q (line 3)".
func (a *analyser) step(from RelationID, e edge) string {
	const needs = "%s needs %s%s (line %d)"
	kind := ""
	switch {
	case e.not:
		kind = "!"
	case e.all:
		kind = "all of "
	}
	return fmt.Sprintf(needs, a.program.Relations[from].Name, kind,
		a.program.Relations[e.to].Name, e.pos.Line)
}

// circle returns a shortest path between two relations, which there is.
func circle(edges [][]edge, from, to RelationID) []edge {
	if from == to {
		return nil
	}
	type arrival struct {
		from RelationID
		edge edge
	}
	came := map[RelationID]arrival{}
	queue := []RelationID{from}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for _, e := range edges[id] {
			if _, seen := came[e.to]; seen || e.to == from {
				continue
			}
			came[e.to] = arrival{from: id, edge: e}
			queue = append(queue, e.to)
		}
	}
	var path []edge
	for at := to; at != from; at = came[at].from {
		path = append([]edge{came[at].edge}, path...)
	}
	return path
}
