package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-live/heddle/host"
	"github.com/heddle-live/heddle/host/cli"
	"github.com/heddle-live/heddle/sdk/client"
)

const claimProgram = `+task(id: int)
+claimed(id: int, user: string)
action claim($id: int, $user: string) :=
  +claimed($id, $user) <- task($id), !claimed($id, _)
view page($user: string) := mine: ?claimed(Id, $user), free: ?task(Id), !claimed(Id, _), $user != ""
`

// Of many clients that claim one task at once, exactly one gets it, and a command that
// comes later is told.
func TestClaims(t *testing.T) {
	s := startServer(t)
	s.apply(claimProgram)
	s.write(`{"insert":{"task":[[7]]}}`)
	c, err := client.Dial(t.Context(), "moq://"+s.running.DataAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	const racers = 20
	won := make([]int, racers)
	var race sync.WaitGroup
	for i := range racers {
		race.Go(func() {
			receipt, err := c.Call(t.Context(), "g", "claim", 7, string(rune('a'+i)))
			if err != nil {
				t.Error(err)
				return
			}
			won[i] = receipt.Inserted
		})
	}
	race.Wait()
	all := 0
	for _, n := range won {
		all += n
	}
	if all != 1 {
		t.Errorf("%d of %d have the claim: %v", all, racers, won)
	}
	var out bytes.Buffer
	err = run(t.Context(), &out, "call", "g", "claim", "7", "late",
		"--server", "http://"+s.running.AdminAddr(), "--key", testKey)
	if host.Report(&out, err) != cli.ExitUnmet {
		t.Errorf("%v\n%s", err, &out)
	}
	_, err = c.Call(t.Context(), "g", "clam", 7)
	if refused, ok := errors.AsType[*client.CallError](err); !ok || refused.Code != "action_unknown" ||
		refused.Status != 404 || refused.Hint == "" {
		t.Errorf("%v", err)
	}
}

// A view with named parts reaches a client as one update for all parts, and a terminal
// part by part.
func TestWatchNamedParts(t *testing.T) {
	s := startServer(t)
	s.apply(claimProgram)
	s.write(`{"insert":{"task":[[7],[8]]}}`)
	c, err := client.Dial(t.Context(), "moq://"+s.running.DataAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	w, err := c.Watch(t.Context(), "g", "page", "ann")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for u, err := range w.Updates() {
		if err != nil {
			t.Fatal(err)
		}
		mine, free := u.Part("mine"), u.Part("free")
		got = append(got, fmt.Sprint(u.Revision, mine.Entered, mine.Left, free.Entered, free.Left))
		if len(got) == 2 {
			break
		}
		if _, err := c.Call(t.Context(), "g", "claim", 7, "ann"); err != nil {
			t.Fatal(err)
		}
	}
	if want := "2 [] [] [[7] [8]] []|3 [[7 ann]] [] [] [[7]]"; strings.Join(got, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "|"), want)
	}
	var out bytes.Buffer
	err = run(t.Context(), &out, "watch", "g", "page", "ann", "--once",
		"--connect", "moq://"+s.running.DataAddr())
	want := "# mine: Id\tuser at revision 3: 1 row\n  7\tann\n# free: Id at revision 3: 1 row\n  8\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\ngot  %q\nwant %q", err, out.String(), want)
	}
}
