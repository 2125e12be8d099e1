package dataflow

import "github.com/heddle-live/heddle/engine/value"

// direct is the evaluation of a transient network that has one rule, whose body reads
// nothing but the goal's parameters and base relations. Its plan can hand on what it
// finds as it finds it, without a table, and be run again and again.
type direct struct {
	plan    *plan // nil if the network has more to do
	repeats bool
	take    func(row []value.ID)
	// fails tells that a computation failed.
	fails bool
}

// findDirect looks whether the network is for direct evaluation.
func (n *Network) findDirect(rules []*rule) {
	if !n.transient || len(n.goals) != 1 || len(rules) != 1 {
		return
	}
	g, r := n.goals[0], rules[0]
	if r.head.predicate != g.result || g.result.window != nil || len(g.root.readers) != 1 {
		return
	}
	for _, a := range r.body {
		if a.predicate.kind != base && a.predicate != g.root {
			return
		}
	}
	n.direct.plan = g.root.readers[0]
	told := make(boundSet, r.registers)
	told.bind(r.head)
	for _, a := range r.body {
		n.direct.repeats = n.direct.repeats || !a.negated && !told.hasAll(a.terms)
	}
}

// IsDirect reports whether a transient network can Read.
func (n *Network) IsDirect() bool { return n.direct.plan != nil }

// Repeats reports whether Read may find a row more than once: the rule then has
// variables that the result has not.
func (n *Network) Repeats() bool { return n.direct.repeats }

// Read calls take for each row of the result at the parameters key, which are ids of
// s, instead of Demand and Settle. The row is valid during the call. It may be called
// again, as long as the network is not Spent. It reports false if a computation failed,
// which Settle can tell more of; what was taken then means nothing. Errors are those of
// Settle.
func (n *Network) Read(s Symbols, key []value.ID, take func(row []value.ID)) (bool, error) {
	d := &n.direct
	n.symbols, d.take, d.fails = s, take, false
	n.sign, n.stop, n.err = 1, false, nil
	n.started = place{predicate: n.goals[0].root}
	for i := range d.plan.steps {
		d.plan.steps[i].scans = 0
	}
	if n.isLimited {
		n.startMeter()
	}
	if n.begin(d.plan, key) {
		n.run(0)
	}
	err := n.err
	d.take, n.stop, n.err = nil, false, nil
	return !d.fails, err
}

// Spent reports whether Read made an index for itself, which the next one must not use.
func (n *Network) Spent() bool { return len(n.detached) > 0 }

// hand receives a derivation of a direct evaluation.
func (n *Network) hand(to *sink) {
	if to.predicate.kind == failure {
		n.direct.fails, n.stop = true, true
		return
	}
	n.direct.take(to.row)
}
