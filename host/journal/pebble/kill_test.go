package pebble

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host/journal"
)

// childVariable names the journal's directory to a copy of the test binary that
// is there to be killed.
const childVariable = "HEDDLE_JOURNAL_TEST_CHILD"

const killWriters = 4

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := killChild(context.Background(), dir, os.Stdout); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// request is one writer's transaction: three facts (writer, count, part).
type request struct {
	writer, count int
	done          chan uint64 // the revision
}

func (q *request) record(revision uint64) *journal.Record {
	r := &journal.Record{
		Revision: revision, TimeMillis: int64(q.count), Effective: true,
		Caller: fmt.Sprint("writer ", q.writer), IdempotencyKey: fmt.Sprint(q.count),
		Answer: fmt.Append(nil, revision),
	}
	for part := range 3 {
		r.Mutations = append(r.Mutations, journal.Mutation{
			Relation: uint32(q.writer), Tuple: fmt.Appendf(nil, "%08d/%d", q.count, part),
		})
	}
	return r
}

// killChild opens the journal, says what it finds, and writes until it is
// killed. It acknowledges on out what is durable.
func killChild(ctx context.Context, dir string, out io.Writer) error {
	j, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	if err := j.Create(ctx, "g"); err != nil && !errors.Is(err, journal.ErrExists) {
		return err
	}
	counts, err := killState(ctx, j)
	if err != nil {
		return err
	}
	p, err := j.Open(ctx, "g", time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "head", p.Revision, p.Opening)
	queue := make(chan *request, killWriters)
	for writer, count := range counts {
		go func() {
			q := &request{writer: writer, done: make(chan uint64)}
			for q.count = count + 1; ; q.count++ {
				queue <- q
				fmt.Fprintln(out, "ack", writer, q.count, <-q.done)
			}
		}()
	}
	return killLoop(ctx, j, p.Revision, queue)
}

// killLoop is the graph's loop: it takes all that waits and appends it.
func killLoop(ctx context.Context, j *Journal, revision uint64, queue chan *request) error {
	for q := range queue {
		batch := []*request{q}
		for len(queue) > 0 {
			batch = append(batch, <-queue)
		}
		var records []*journal.Record
		for _, q := range batch {
			revision++
			records = append(records, q.record(revision))
		}
		if _, err := j.Append(ctx, "g", records); err != nil {
			return err
		}
		for i, q := range batch {
			q.done <- records[i].Revision
		}
		if revision%500 == 0 {
			if err := j.Trim(ctx, "g", revision-400); err != nil {
				return err
			}
		}
	}
	return nil
}

// killState checks everything that is there and returns each writer's newest
// count. A writer's counts must be dense, and each of three parts.
func killState(ctx context.Context, j journal.Journal) (counts [killWriters]int, err error) {
	if _, err := journal.Verify(ctx, j, "g"); err != nil {
		return counts, err
	}
	var parts [killWriters]int
	_, err = j.State(ctx, "g", func(m journal.Mutation) error {
		w := int(m.Relation)
		if want := fmt.Sprintf("%08d/%d", parts[w]/3+1, parts[w]%3); string(m.Tuple) != want {
			return fmt.Errorf("writer %d: fact %q, want %q", w, m.Tuple, want)
		}
		parts[w]++
		return nil
	})
	if err != nil {
		return counts, err
	}
	total := 0
	for w, n := range parts {
		if n%3 != 0 {
			return counts, fmt.Errorf("writer %d: %d facts: half a transaction", w, n)
		}
		counts[w] = n / 3
		total += counts[w]
	}
	p, err := j.Head(ctx, "g")
	if err == nil && p.Revision != uint64(total) {
		err = fmt.Errorf("revision %d for %d transactions", p.Revision, total)
	}
	return counts, err
}

// TestKill kills the writing process 30 times. No acknowledged transaction is
// lost, none is half there or there twice, and the opening number rises.
func TestKill(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	acked := map[[2]int]uint64{} // writer, count -> revision
	newest, opening := uint64(0), uint64(0)
	for round := range 30 {
		child := startChild(t, dir)
		var head, openingNow uint64
		if _, err := fmt.Sscanf(child.line(t), "head %d %d", &head, &openingNow); err != nil {
			t.Fatalf("round %d: %q", round, child.last)
		}
		if head < newest || openingNow <= opening {
			t.Fatalf("round %d: head %d after %d acknowledged, opening %d after %d",
				round, head, newest, openingNow, opening)
		}
		opening = openingNow
		if round == 0 {
			wantLockedBy(t, dir, child.cmd.Process.Pid)
		}
		kill := rng.IntN(200)
		for n := 0; ; n++ {
			if n == kill {
				if err := child.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			line := child.line(t)
			if line == "" {
				break // all that it could say is read
			}
			var q request
			var revision uint64
			if _, err := fmt.Sscanf(line, "ack %d %d %d", &q.writer, &q.count, &revision); err != nil {
				if n < kill {
					t.Fatalf("round %d: %q", round, line)
				}
				continue // cut short by the kill
			}
			acked[[2]int{q.writer, q.count}] = revision
			newest = max(newest, revision)
		}
		_ = child.cmd.Wait() // it was killed, as it says
	}
	checkKilled(t, dir, acked, newest)
}

// checkKilled looks at what the last killed process left.
func checkKilled(t *testing.T, dir string, acked map[[2]int]uint64, newest uint64) {
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	counts, err := killState(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	receipts := 0
	for of, revision := range acked {
		if of[1] > counts[of[0]] {
			t.Errorf("writer %d: transaction %d was acknowledged, %d are there", of[0], of[1], counts[of[0]])
		}
		receipt, err := j.Idempotent(t.Context(), "g", fmt.Sprint("writer ", of[0]), fmt.Sprint(of[1]))
		if err != nil {
			t.Fatal(err)
		}
		if receipt == nil {
			if revision+400 > newest {
				t.Errorf("no receipt of revision %d", revision)
			}
			continue
		}
		if receipts++; receipt.Revision != revision {
			t.Errorf("writer %d: transaction %d has revision %d and was acknowledged as %d",
				of[0], of[1], receipt.Revision, revision)
		}
	}
	t.Logf("%d transactions acknowledged, %d receipts kept", len(acked), receipts)
}

func wantLockedBy(t *testing.T, dir string, pid int) {
	t.Helper()
	_, err := Open(dir, Options{})
	if !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", pid)) {
		t.Errorf("open of a journal that process %d holds: %v", pid, err)
	}
}

// child is a copy of the test binary that writes to a journal.
type child struct {
	cmd  *exec.Cmd
	out  *bufio.Scanner
	last string
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.CommandContext(t.Context(), self)}
	c.cmd.Env = append(os.Environ(), childVariable+"="+dir)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// line returns the next line of the child, "" after the last one.
func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.out.Scan() {
		if err := c.out.Err(); err != nil {
			t.Fatal(err)
		}
		return ""
	}
	c.last = c.out.Text()
	return c.last
}
