package oracle

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/heddle-live/heddle/engine"
)

// stack returns the lines of the stack that are ours, of a panic.
func stack() string {
	var b strings.Builder
	for line := range strings.Lines(string(debug.Stack())) {
		if strings.Contains(line, "/engine/") && strings.Contains(line, ".go:") &&
			!strings.Contains(line, "/oracle/") {
			b.WriteString("\n" + strings.TrimSpace(line[strings.LastIndex(line, "/engine/"):]))
		}
	}
	return b.String()
}

// fails runs a scenario and returns its failure, cut off behind the step that shows
// it; nil if there is none, or if the scenario means nothing.
func fails(s *scenario) (*scenario, error) {
	at, err := play(s, newSeen())
	if err == nil || errors.Is(err, errInvalid) {
		return s, nil
	}
	cut := *s
	cut.steps = slices.Clone(s.steps[:min(at+1, len(s.steps))])
	if _, again := play(&cut, newSeen()); again != nil {
		return &cut, again
	}
	return s, err
}

// shrink returns a smaller scenario that still fails, and how. It leaves out what it
// can, from steps to single literals, until nothing can be left out or the number of
// tries is used up.
func shrink(s *scenario, err error, tries int) (*scenario, error) {
	if cut, failure := fails(s); failure != nil {
		s, err = cut, failure
	}
	for again := true; again; {
		again = false
		for candidate := range smaller(s) {
			if tries--; tries < 0 {
				return s, err
			}
			if next, failure := fails(candidate); failure != nil {
				s, err, again = next, failure, true
				break
			}
		}
	}
	return s, err
}

// without returns the list without n elements from at on.
func without[T any](list []T, at, n int) []T {
	return slices.Concat(list[:at], list[min(at+n, len(list)):])
}

// smaller yields scenarios with something left out, the largest pieces first.
func smaller(s *scenario) func(yield func(*scenario) bool) {
	return func(yield func(*scenario) bool) {
		for n := len(s.steps); n > 0; n /= 2 {
			for at := 0; at < len(s.steps); at += n {
				next := *s
				next.steps = without(s.steps, at, n)
				if !yield(&next) {
					return
				}
			}
		}
		plain := *s
		plain.told, plain.limits = 1, engine.Limits{}
		if (s.told != 1 || s.limits != plain.limits) && !yield(&plain) {
			return
		}
		for p := range smallerSources(s.program) {
			next := *s
			next.program = p
			if !yield(&next) {
				return
			}
		}
		for i := range s.steps {
			for changed := range smallerSteps(s.steps[i]) {
				next := *s
				next.steps = slices.Clone(s.steps)
				next.steps[i] = changed
				if !yield(&next) {
					return
				}
			}
		}
	}
}

func smallerSteps(s step) func(yield func(step) bool) {
	return func(yield func(step) bool) {
		for statements := range smallerStatements(s.statements) {
			next := s
			next.statements = statements
			if !yield(next) {
				return
			}
		}
		if s.program == nil {
			return
		}
		for p := range smallerSources(s.program) {
			next := s
			next.program = p
			if !yield(next) {
				return
			}
		}
	}
}

func smallerStatements(statements []statement) func(yield func([]statement) bool) {
	return func(yield func([]statement) bool) {
		for i, s := range statements {
			if len(statements) > 1 && !yield(without(statements, i, 1)) {
				return
			}
			var changed []statement
			for j := range s.body {
				changed = append(changed, statement{s.heads, without(s.body, j, 1)})
			}
			for j := range s.heads {
				if len(s.heads) > 1 {
					changed = append(changed, statement{without(s.heads, j, 1), s.body})
				}
			}
			for _, c := range changed {
				if c.body != nil && len(c.body) == 0 {
					c.body = nil
				}
				next := slices.Clone(statements)
				next[i] = c
				if !yield(next) {
					return
				}
			}
		}
	}
}

// smallerSources yields programs with a declaration or a literal left out.
func smallerSources(s *source) func(yield func(*source) bool) {
	var out []*source
	try := func(change func(next *source)) {
		next := s.clone()
		change(next)
		out = append(out, next)
	}
	for i := range s.actions {
		try(func(n *source) { n.actions = without(s.actions, i, 1) })
	}
	for i := range s.views {
		try(func(n *source) { n.views = without(s.views, i, 1) })
	}
	for i := range s.clauses {
		try(func(n *source) { n.clauses = without(s.clauses, i, 1) })
	}
	for i := range s.schemas {
		try(func(n *source) { n.schemas = without(s.schemas, i, 1) })
	}
	for i, c := range s.clauses {
		for j := range c.body {
			try(func(n *source) { n.clauses[i].body = without(c.body, j, 1) })
		}
	}
	for i, v := range s.views {
		for j, p := range v.parts {
			changeParts := func(parts []part) {
				try(func(n *source) { n.views[i].parts = parts })
			}
			if len(v.parts) > 1 {
				changeParts(without(v.parts, j, 1))
			}
			change := func(p part) {
				parts := slices.Clone(v.parts)
				parts[j] = p
				changeParts(parts)
			}
			for k := range p.body {
				change(part{p.name, p.goal, without(p.body, k, 1), p.tail})
			}
			if p.tail != "" {
				change(part{p.name, p.goal, p.body, ""})
			}
		}
	}
	for i, a := range s.actions {
		for statements := range smallerStatements(a.statements) {
			try(func(n *source) { n.actions[i].statements = statements })
		}
	}
	return slices.Values(out)
}

// String is the report of a scenario.
func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "changes are told after %d steps, limits are %+v\nprogram\n%v",
		s.told, s.limits, s.program)
	for i, step := range s.steps {
		fmt.Fprintf(&b, "step %d: %v\n", i+1, step)
	}
	return b.String()
}
