package host_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var killSeed = flag.Uint64("kill.seed", 0, "seed of TestKill; 0 takes a random one")

// What TestKill does, and less of it in -short mode.
const (
	killRounds      = 30
	killRoundsShort = 8
	killWriters     = 4
)

// killMoment says when a round's server is killed.
type killMoment int

const (
	killAfterAcks  killMoment = iota // after some acknowledged transactions
	killAfterDelay                   // at any time
	killInLoad                       // while a load is on its way
	killInApply                      // while a program is on its way
	killInStart                      // before or just after it is ready
)

// killMoments is dealt to the rounds again and again, in a random order.
var killMoments = []killMoment{
	killAfterAcks, killAfterDelay, killInLoad, killInApply, killAfterAcks,
	killInLoad, killInStart, killAfterDelay, killInLoad, killAfterAcks,
}

func (k killMoment) String() string {
	return [...]string{"after acks", "after a delay", "in a load", "in an apply", "in its start"}[k]
}

// killTest is what the clients of the servers know, over all rounds.
type killTest struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string
	writers [killWriters]*killWriter
	loads   []killLoad
	schema  uint64 // newest program that was acknowledged
	applied bool   // one more was sent

	epochs map[string]*process // of all rounds
	// Writes without an answer when the server was killed, by what had become of them.
	durable, lost int
	// The slowest so far: random moments are drawn around them.
	startTime, loadTime, applyTime time.Duration
}

// TestKill kills a server 30 times while four clients write, load and apply,
// and looks after each restart at what is there: everything that was
// acknowledged, nothing half, nothing twice.
func TestKill(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	rounds := killRounds
	if testing.Short() || underRace {
		rounds = killRoundsShort
		t.Logf("-short or under the race detector: %d rounds of %d, because each restarts a server",
			rounds, killRounds)
	}
	t.Logf("seed %d", seed)
	k := &killTest{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), epochs: map[string]*process{},
		startTime: 200 * time.Millisecond, loadTime: 100 * time.Millisecond,
		applyTime: 10 * time.Millisecond,
	}
	for i := range k.writers {
		k.writers[i] = &killWriter{id: i}
	}
	k.setUp()
	var deck []killMoment
	for round := range rounds {
		if len(deck) == 0 {
			deck = slices.Clone(killMoments)
			k.rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		moment := deck[0]
		deck = deck[1:]
		began := time.Now()
		k.round(moment)
		t.Logf("round %2d, killed %-13s %5d transactions acknowledged, %2d loads, program %d, %v",
			round, moment.String()+":", k.acknowledged(), len(k.loads), k.schema,
			time.Since(began).Round(time.Millisecond))
		if t.Failed() {
			return
		}
	}
	p := k.spawn()
	p.await()
	k.check(p)
	k.settle(p)
	k.check(p)
	p.stop()
	t.Logf("of the writes without an answer %d were durable and %d were not", k.durable, k.lost)
}

func (k *killTest) spawn() *process {
	return spawn(k.t, k.dir, "--query-rows", "1000000")
}

func (k *killTest) setUp() {
	p := k.spawn()
	p.await()
	k.apply(p)
	p.stop()
}

// round starts a server on what the one before left, checks it, gives it work
// and kills it.
func (k *killTest) round(moment killMoment) {
	began := time.Now()
	p := k.spawn()
	if moment == killInStart {
		select {
		case <-p.printed:
		case <-time.After(k.upTo(k.startTime)):
		}
		k.kill(p)
		return
	}
	p.await()
	k.startTime = max(k.startTime, time.Since(began))
	k.check(p)
	k.settle(p)
	k.repeat(p)
	if k.t.Failed() {
		return
	}
	k.work(p, moment)
}

// kill kills a server that must be alive until then.
func (k *killTest) kill(p *process) {
	p.kill()
	if p.err == nil || p.err.Error() != "signal: killed" {
		k.t.Errorf("the server ended before it was killed: %v\n%s", p.err, p.stderr.String())
	}
}

// upTo draws a moment that is sometimes after something that takes this long.
func (k *killTest) upTo(usual time.Duration) time.Duration {
	return time.Duration(k.rng.Int64N(int64(usual) * 5 / 4))
}

// work has all clients write and watch until the moment comes, and returns when
// the server is gone and each client has noticed.
func (k *killTest) work(p *process, moment killMoment) {
	w := &killWork{process: p, moment: make(chan struct{}), killAfter: -1}
	if moment == killAfterAcks {
		w.killAfter = int64(1 + k.rng.IntN(200))
	}
	client, hangUp := p.dial("quic")
	defer hangUp()
	for _, writer := range k.writers {
		writer.watch(k.t, client)
		rng := rand.New(rand.NewPCG(k.rng.Uint64(), 2))
		w.clients.Go(func() { writer.run(k.t, w, rng) })
	}
	wait := processPatience
	switch moment {
	case killAfterDelay:
		wait = k.upTo(300 * time.Millisecond)
	case killInLoad:
		k.loads = append(k.loads, killLoad{rows: 2000 + k.rng.IntN(10000)})
		wait = k.upTo(k.loadTime)
		w.clients.Go(func() { k.load(p, w) })
	case killInApply:
		k.applied = true
		wait = k.upTo(k.applyTime)
		w.clients.Go(func() { k.applyNext(p, w) })
	}
	select {
	case <-w.moment:
	case <-time.After(wait):
		if moment == killAfterAcks {
			k.t.Errorf("%d acknowledgements in %v", w.acks.Load(), wait)
		}
	}
	w.killing.Store(true)
	k.kill(p)
	w.clients.Wait()
	hangUp()
	for _, writer := range k.writers {
		writer.watched.Wait()
	}
}

// killWork is one round's work.
type killWork struct {
	process   *process
	clients   sync.WaitGroup
	killing   atomic.Bool // from now on a request may have no answer
	acks      atomic.Int64
	killAfter int64         // number of acks; -1: not by acks
	moment    chan struct{} // closed at that number
}

func (w *killWork) ack() {
	if w.acks.Add(1) == w.killAfter {
		close(w.moment)
	}
}

// write sends one write. Revision 0 means that its outcome is unknown, because
// ctx ended or the server was killed; any other failure is an error.
func (w *killWork) write(ctx context.Context, c call) (r receipt, err error) {
	status, body, err := w.process.send(ctx, c)
	switch {
	case err != nil && (ctx.Err() != nil || w.killing.Load()):
		return receipt{}, nil
	case err != nil:
		return receipt{}, err
	case status != http.StatusOK:
		return receipt{}, fmt.Errorf("%d %.300s", status, body)
	}
	return r, json.Unmarshal(body, &r)
}

// killProgram is the program with this schema number. whole joins what a
// transaction writes into two relations, so that half a one would show.
func killProgram(schema uint64) string {
	return fmt.Sprintf(`+item(writer: int, number: int, part: int, parts: int)
+cursor(writer: int, number: int)
+bulk(load: int, row: int)
whole(W, N) <- cursor(W, N), item(W, N, 0, _)
view last($writer: int) := ?whole($writer, N)
view version_%d($writer: int) := ?cursor($writer, N), N > %[1]d
`, schema)
}

func (k *killTest) applyCall(schema uint64) call {
	return call{
		method: "PUT", path: "/v1/graphs/g/program?create", media: "text/plain",
		body: killProgram(schema),
	}
}

// apply applies the next program on a server that lives on.
func (k *killTest) apply(p *process) {
	began := time.Now()
	var answer struct{ Schema uint64 }
	p.must(&answer, k.applyCall(k.schema+1))
	k.applyTime = max(k.applyTime, time.Since(began))
	k.schema++
	k.applied = false
	if answer.Schema != k.schema {
		k.t.Errorf("program %d got the number %d", k.schema, answer.Schema)
	}
}

// applyNext applies the next program on a server that may be killed.
func (k *killTest) applyNext(p *process, w *killWork) {
	status, body, err := p.send(k.t.Context(), k.applyCall(k.schema+1))
	switch {
	case err == nil && status == 200:
		k.schema++
		k.applied = false
	case err == nil || !w.killing.Load():
		k.t.Errorf("apply: %d %s: %v", status, body, err)
	}
}

func (k *killTest) checkProgram(p *process, schema uint64) {
	k.t.Helper()
	if schema != k.schema && !(k.applied && schema == k.schema+1) {
		k.t.Errorf("program %d is in force, %d was acknowledged; another one sent: %v",
			schema, k.schema, k.applied)
	}
	var program struct {
		Source string
		Schema uint64
	}
	p.must(&program, call{method: "GET", path: "/v1/graphs/g/program"})
	if program.Schema != schema || program.Source != killProgram(schema) {
		k.t.Errorf("program %d, want %d:\n%s", program.Schema, schema, program.Source)
	}
}

// killLoad is one CSV file, loaded as one transaction.
type killLoad struct {
	rows     int
	revision uint64 // 0 until it is acknowledged
}

func (k *killTest) loadCall(number int) call {
	var text strings.Builder
	text.WriteString("row,load\n")
	for row := range k.loads[number].rows {
		fmt.Fprintf(&text, "%d,%d\n", row, number)
	}
	return call{
		method: "POST", path: "/v1/graphs/g/relations/bulk/rows", media: "text/csv",
		key: fmt.Sprint("load ", number), body: text.String(),
	}
}

// load loads the newest file.
func (k *killTest) load(p *process, w *killWork) {
	began := time.Now()
	load := &k.loads[len(k.loads)-1]
	r, err := w.write(k.t.Context(), k.loadCall(len(k.loads)-1))
	if err != nil {
		k.t.Error("load:", err)
	}
	if r.Revision == 0 {
		return
	}
	k.loadTime = max(k.loadTime, time.Since(began))
	load.revision = r.Revision
	if r.Replayed || r.Inserted != load.rows {
		k.t.Errorf("a load of %d rows: %+v", load.rows, r)
	}
}

// checkLoad returns how many rows of a load there are: all or none, and all if
// it was acknowledged.
func (k *killTest) checkLoad(p *process, number int) int {
	k.t.Helper()
	load := k.loads[number]
	rows := p.query("?bulk($load, R)", map[string]any{"load": number})
	if n := len(rows); n != load.rows && (n != 0 || load.revision != 0) {
		k.t.Errorf("load %d of %d rows has %d, acknowledged as revision %d",
			number, load.rows, n, load.revision)
	}
	return len(rows)
}

// settle repeats what had no answer, until all of it has one.
func (k *killTest) settle(p *process) {
	if k.applied {
		k.apply(p)
	}
	for number := range k.loads {
		load := &k.loads[number]
		if load.revision != 0 {
			continue
		}
		var r receipt
		p.must(&r, k.loadCall(number))
		load.revision = r.Revision
		k.settled(r)
		if r.Inserted != load.rows {
			k.t.Errorf("a load of %d rows, repeated: %+v", load.rows, r)
		}
	}
	for _, w := range k.writers {
		for len(w.acked) < int(w.sent.Load()) {
			var r receipt
			p.must(&r, w.call(len(w.acked)+1))
			w.acknowledge(k.t, r)
			k.settled(r)
		}
		w.compareSeen(k.t)
	}
}

func (k *killTest) settled(r receipt) {
	if r.Replayed {
		k.durable++
	} else {
		k.lost++
	}
}

// repeat sends writes again that were acknowledged in any round: the receipt
// stays, and another body under the key is refused.
func (k *killTest) repeat(p *process) {
	for _, w := range k.writers {
		if len(w.acked) == 0 {
			continue
		}
		number := 1 + k.rng.IntN(len(w.acked))
		c := w.call(number)
		var r receipt
		p.must(&r, c)
		if want := w.acked[number-1]; !r.Replayed || r.Revision != want {
			k.t.Errorf("writer %d: transaction %d again: %+v, want revision %d", w.id, number, r, want)
		}
		c.body = w.call(number + 1).body
		if status, body, err := p.send(k.t.Context(), c); status != 422 {
			k.t.Errorf("another body under a known key: %d %s: %v", status, body, err)
		}
	}
	if n := len(k.loads); n > 0 {
		number := k.rng.IntN(n)
		var r receipt
		p.must(&r, k.loadCall(number))
		if want := k.loads[number].revision; !r.Replayed || r.Revision != want {
			k.t.Errorf("load %d again: %+v, want revision %d", number, r, want)
		}
	}
}

func (k *killTest) acknowledged() (n int) {
	for _, w := range k.writers {
		n += len(w.acked)
	}
	return n
}

// check compares what the server holds with what its clients know.
func (k *killTest) check(p *process) {
	k.t.Helper()
	var graph struct {
		Revision, Schema uint64
		Epoch            string
		Facts            int
	}
	p.must(&graph, call{method: "GET", path: "/v1/graphs/g"})
	if of := k.epochs[graph.Epoch]; of != nil && of != p {
		k.t.Errorf("epoch %s was that of an earlier process", graph.Epoch)
	}
	k.epochs[graph.Epoch] = p
	k.checkProgram(p, graph.Schema)
	transactions, facts := 0, 0
	for _, w := range k.writers {
		n, rows := w.check(p)
		transactions += n
		facts += rows
	}
	for number := range k.loads {
		if rows := k.checkLoad(p, number); rows > 0 {
			transactions++
			facts += rows
		}
	}
	// One revision for each transaction and program: none was applied twice, and
	// none of which nobody knows.
	if want := uint64(transactions) + graph.Schema; graph.Revision != want {
		k.t.Errorf("revision %d after %d transactions and %d programs",
			graph.Revision, transactions, graph.Schema)
	}
	if graph.Facts != facts {
		k.t.Errorf("%d facts, want %d", graph.Facts, facts)
	}
}
