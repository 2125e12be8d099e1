package engine

import (
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/engine/value"
)

// BenchmarkClaim is one call of an action with a condition, which every second caller
// meets.
func BenchmarkClaim(b *testing.B) {
	const tasks = 1_000_000
	const source = `+task(id: int)
+claim(task: int, user: int)
view mine($user: int) := ?claim(T, $user)
action claim($user: int, $task: int) := +claim($task, $user) <- task($task), !claim($task, _)
`
	file, err := parse.Program(source)
	if err != nil {
		b.Fatal(err)
	}
	program, err := analysis.Analyse(file, source)
	if err != nil {
		b.Fatal(err)
	}
	e := New(nil)
	if _, err := e.Deploy(program, false); err != nil {
		b.Fatal(err)
	}
	var ops []analysis.Op
	for i := range tasks {
		ops = append(ops, ins("task", i))
	}
	apply(b, e, 1, ops...)
	watch(b, e, "mine", 7)
	claim := program.ActionNamed("claim").Statements
	key := make([]value.Value, 2)
	won, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		key[0], key[1] = value.OfInt(int64(i%100)), value.OfInt(int64(i/2%tasks))
		out, err := e.Transact(uint64(i+2), claim, key, TransactOptions{})
		if err != nil {
			b.Fatal(err)
		}
		won += out.Inserted
		e.Changes(func(*Key, uint64, []Change) {})
		i++
	}
	if won < i/2 && i < 2*tasks {
		b.Errorf("%d of %d calls have won", won, i)
	}
}
