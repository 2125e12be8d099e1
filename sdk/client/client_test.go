package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/protocol/wire"
	"github.com/heddle-live/heddle/sdk/frame"
)

func TestWatchFollowsItsKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		w := mustWatch(t, c, 7)
		wantUpdate(t, next(t, w), "r1 [[7 1]] +[[7 1]] -[]")
		n.origin.publish(t, "g/v rows/7", snapshot(2, "[[7,1],[7,2]]", 1, "[[7,2]]", "[]"))
		wantUpdate(t, next(t, w), "r2 [[7 1][7 2]] +[[7 2]] -[]")
		n.origin.publish(t, "g/v rows/7", snapshot(5, "[[7,2],[7,3]]", 2, "[[7,3]]", "[[7,1]]"))
		wantUpdate(t, next(t, w), "r5 [[7 2][7 3]] +[[7 3]] -[[7 1]]")
		u, ok := w.Current()
		if !ok || u.Revision != 5 || len(u.Rows) != 2 || !w.Live() || c.Transport() != "quic" {
			t.Errorf("current %+v, %v, live %v over %q", u, ok, w.Live(), c.Transport())
		}
	})
}

func TestDeltaFramesInOneGroup(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		w := mustWatch(t, c, 7)
		next(t, w)
		delta := fmt.Sprintf(`{"revision":2,"epoch":%q,"schema":1,"base":1,"insert":[[7,2]],`+
			`"retract":[[7,1]],"stale":{"code":"behind","message":"busy"}}`, epoch)
		err := n.origin.track("g/v rows/7").AppendFrame(moq.Frame{Payload: []byte(delta)})
		if err != nil {
			t.Fatal(err)
		}
		wantUpdate(t, next(t, w), "r2 [[7 2]] +[[7 2]] -[[7 1]] stale:behind")
	})
}

func TestMetaTypesTheCells(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v meta", `{"view":"v","schema":1,"text":"","parameters":`+
			`[{"name":"k","type":"string"}],"columns":[{"name":"n","type":"int"}]}`)
		n.origin.publish(t, "g/v rows/a~2fb", first(1, `[["9007199254740993"]]`))
		w := mustWatch(t, c, "a/b")
		wantUpdate(t, next(t, w), "r1 [[9007199254740993]] +[[9007199254740993]] -[]")
		if _, isInt := w.rows[0][0].(int64); !isInt {
			t.Errorf("cell is a %T", w.rows[0][0])
		}
		if m := w.Meta(); m == nil || m.Columns[0].Name != "n" {
			t.Errorf("meta %+v", m)
		}
		synctest.Wait()
		if _, open := n.origin.counts(); open["g/v meta"] != 0 {
			t.Error("meta is still subscribed to")
		}
	})
}

func TestWatchPathUsesTheKeysOwnPath(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v/7/true rows", first(1, "[[7]]"))
		w, err := c.WatchPath(t.Context(), "g", "v", 7, true)
		if err != nil {
			t.Fatal(err)
		}
		wantUpdate(t, next(t, w), "r1 [[7]] +[[7]] -[]")
	})
}

func TestWatchesOfAKeyShareOneSubscription(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		a := mustWatch(t, c, 7)
		next(t, a)
		n.origin.publish(t, "g/v rows/7", snapshot(2, "[[7,2]]", 1, "[[7,2]]", "[[7,1]]"))
		next(t, a)
		b := mustWatch(t, c, int64(7))
		wantUpdate(t, next(t, b), "r2 [[7 2]] +[[7 2]] -[]") // all rows enter for a newcomer
		if asked, open := n.origin.counts(); asked["g/v rows/7"] != 1 || open["g/v rows/7"] != 1 {
			t.Errorf("asked %v, open %v", asked, open)
		}
		a.Close()
		time.Sleep(time.Second)
		if open := n.origin.openRows(); open != 1 {
			t.Errorf("%d open after the first left", open)
		}
		b.Close()
		b.Close()
		time.Sleep(time.Second)
		if open := n.origin.openRows(); open != 0 {
			t.Errorf("%d open after the last left", open)
		}
		if _, err := nextOrError(b); !errors.Is(err, errLoopEnded) {
			t.Errorf("after Close: %v", err)
		}
		wantUpdate(t, next(t, mustWatch(t, c, 7)), "r2 [[7 2]] +[[7 2]] -[]")
	})
}

func TestWatchAgainBeforeTheSubscriptionEnds(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		a := mustWatch(t, c, 7)
		next(t, a)
		a.Close()
		next(t, mustWatch(t, c, 7))
		time.Sleep(time.Second)
		if asked, open := n.origin.counts(); asked["g/v rows/7"] > 2 || open["g/v rows/7"] != 1 {
			t.Errorf("asked %v, open %v", asked, open)
		}
	})
}

func TestSlowLoopSeesLargerUpdates(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		w := mustWatch(t, c, 7)
		next(t, w)
		n.origin.publish(t, "g/v rows/7", snapshot(2, "[[7,1],[7,2]]", 1, "[[7,2]]", "[]"))
		synctest.Wait()
		n.origin.publish(t, "g/v rows/7", snapshot(3, "[[7,2],[7,3]]", 2, "[[7,3]]", "[[7,1]]"))
		synctest.Wait()
		n.origin.publish(t, "g/v rows/7", snapshot(4, "[[7,3]]", 3, "[]", "[[7,2]]"))
		synctest.Wait()
		wantUpdate(t, next(t, w), "r4 [[7 3]] +[[7 3]] -[[7 1]] skipped")
	})
}

func TestLostConnectionIsRepaired(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		w := mustWatch(t, c, 7)
		next(t, w)
		time.Sleep(time.Minute)
		n.cut(nil)
		synctest.Wait()
		if w.Live() || c.Transport() != "" {
			t.Errorf("live %v over %q", w.Live(), c.Transport())
		}
		lost := time.Now()
		n.origin.publish(t, "g/v rows/7", first(2, "[[7,2]]"))
		n.origin.publish(t, "g/v rows/7", snapshot(3, "[[7,2],[7,3]]", 2, "[[7,3]]", "[]"))
		wantUpdate(t, next(t, w), "r3 [[7 2][7 3]] +[[7 2][7 3]] -[[7 1]] skipped")
		if d := time.Since(lost); d != backoffFirst {
			t.Errorf("repaired after %v", d)
		}
		if !w.Live() {
			t.Error("not live again")
		}
	})
}

func TestRetriesBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		time.Sleep(time.Minute)
		n.cut(errors.New("no route"))
		lost := time.Now()
		time.Sleep(time.Minute)
		var delays []time.Duration
		n.mu.Lock()
		n.down = nil
		for _, at := range n.dials[1:] {
			delays = append(delays, at.Sub(lost))
			lost = at
		}
		n.mu.Unlock()
		want := []time.Duration{
			200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
			1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond,
			10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second,
		}
		if !slices.Equal(delays, want) {
			t.Errorf("delays %v", delays)
		}
		lucky := &Client{jitter: func() float64 { return 0 }}
		if d := lucky.backoff(1); d != 200*time.Millisecond {
			t.Errorf("least delay of the second attempt %v", d)
		}
		time.Sleep(backoffMax)
	})
}

func TestServerEndsAWatch(t *testing.T) {
	closed := func(code string) string {
		return fmt.Sprintf(`{"revision":1,"epoch":%q,"schema":1,`+
			`"closed":{"code":%q,"message":"so it is"}}`, epoch, code)
	}
	tests := []struct {
		name string
		end  func(t *testing.T, o *origin)
		want ClosedError
	}{
		{"dropped, by frame", func(t *testing.T, o *origin) {
			err := o.track("g/v rows/7").AppendFrame(
				moq.Frame{Payload: []byte(closed("view_dropped"))})
			if err != nil {
				t.Fatal(err)
			}
		}, ClosedError{"view_dropped", "so it is"}},
		{"dropped, by reset", func(t *testing.T, o *origin) {
			o.drop("g/v rows/7", protocol.CodeViewDropped)
		}, ClosedError{Code: "view_dropped"}},
		{"expired", func(t *testing.T, o *origin) {
			o.drop("g/v rows/7", protocol.CodeTokenExpired)
		}, ClosedError{Code: "token_expired"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *Client, n *network) {
				n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
				w := mustWatch(t, c, 7)
				next(t, w)
				test.end(t, n.origin)
				_, err := nextOrError(w)
				if e, ok := errors.AsType[*ClosedError](err); !ok || *e != test.want {
					t.Errorf("got %v", err)
				}
				if u, ok := w.Current(); !ok || len(u.Rows) != 1 || w.Live() {
					t.Errorf("current %+v, %v, live %v", u, ok, w.Live())
				}
				// A further watch asks anew.
				n.origin.publish(t, "g/v rows/7", first(2, "[[7,2]]"))
				if test.name != "dropped, by frame" {
					wantUpdate(t, next(t, mustWatch(t, c, 7)), "r2 [[7 2]] +[[7 2]] -[]")
				}
			})
		})
	}
}

func TestUnknownKeyIsToldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		began := time.Now()
		_, err := nextOrError(mustWatch(t, c, 7))
		e, ok := errors.AsType[*ClosedError](err)
		if !ok || e.Code != "not_found" || time.Since(began) > time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// A server that starts may not know a view yet that it will serve again.
func TestKnownKeyMayReturn(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		w := mustWatch(t, c, 7)
		next(t, w)
		n.origin.drop("g/v rows/7", protocol.CodeShutdown)
		time.Sleep(time.Second)
		n.origin.publish(t, "g/v rows/7", first(2, "[[7,2]]"))
		wantUpdate(t, next(t, w), "r2 [[7 2]] +[[7 2]] -[[7 1]] skipped")
		n.origin.drop("g/v rows/7", protocol.CodeShutdown)
		_, err := nextOrError(w)
		if e, ok := errors.AsType[*ClosedError](err); !ok || e.Code != "not_found" {
			t.Errorf("got %v", err)
		}
	})
}

func TestChangedViewIsWatchedAgainWithNewTypes(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		meta := `{"view":"v","schema":%d,"text":"","parameters":[],"columns":[{"name":"a","type":%q}]}`
		n.origin.publish(t, "g/v meta", fmt.Sprintf(meta, 1, "int"))
		n.origin.publish(t, "g/v rows/7", first(1, "[[1]]"))
		w := mustWatch(t, c, 7)
		next(t, w)
		n.origin.publish(t, "g/v meta", fmt.Sprintf(meta, 2, "string"))
		n.origin.drop("g/v rows/7", protocol.CodeViewChanged)
		n.origin.publish(t, "g/v rows/7", first(2, `[["x"]]`))
		wantUpdate(t, next(t, w), "r2 [[x]] +[[x]] -[[1]] skipped")
		if w.Meta().Columns[0].Type != frame.String {
			t.Errorf("meta %+v", w.Meta())
		}
	})
}

func TestGapIsHealed(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		w := mustWatch(t, c, 7)
		next(t, w)
		// A delta whose base was never seen.
		n.origin.publish(t, "g/v rows/7",
			fmt.Sprintf(`{"revision":9,"epoch":%q,"base":8,"insert":[[7,9]],"retract":[]}`, epoch))
		time.Sleep(gapTimeout + time.Minute)
		if asked, _ := n.origin.counts(); asked["g/v rows/7"] < 2 {
			t.Errorf("asked %d times", asked["g/v rows/7"])
		}
		n.origin.publish(t, "g/v rows/7", first(9, "[[7,9]]"))
		wantUpdate(t, next(t, w), "r9 [[7 9]] +[[7 9]] -[[7 1]] skipped")
	})
}

func TestSilentServerIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.track("g/v rows/7") // without a group
		w := mustWatch(t, c, 7)
		time.Sleep(3 * firstFrameTimeout)
		if asked, _ := n.origin.counts(); asked["g/v rows/7"] != 3 {
			t.Errorf("asked %d times", asked["g/v rows/7"])
		}
		n.origin.publish(t, "g/v rows/7", first(1, "[]"))
		wantUpdate(t, next(t, w), "r1 [] +[] -[]")
	})
}

func TestMalformedFrameChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		w := mustWatch(t, c, 7)
		next(t, w)
		n.origin.publish(t, "g/v rows/7", `{"revision":`)
		time.Sleep(time.Minute)
		n.origin.publish(t, "g/v rows/7", first(3, "[[7,3]]"))
		wantUpdate(t, next(t, w), "r3 [[7 3]] +[[7 3]] -[[7 1]] skipped")
	})
}

func TestFiftySubscribesAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		const keys = 120
		for k := range keys {
			n.origin.track(fmt.Sprintf("g/v rows/%d", k))
		}
		var watches []*Watch
		for k := range keys {
			watches = append(watches, mustWatch(t, c, k))
		}
		for _, want := range []int{50, 100, 120} {
			synctest.Wait()
			if open := n.origin.openRows(); open != want {
				t.Fatalf("%d open, want %d", open, want)
			}
			_, open := n.origin.counts()
			for k := range keys {
				name := fmt.Sprintf("g/v rows/%d", k)
				if _, has := n.origin.track(name).Newest(); open[name] > 0 && !has {
					n.origin.publish(t, name, first(1, fmt.Sprintf("[[%d]]", k)))
				}
			}
		}
		for k, w := range watches {
			wantUpdate(t, next(t, w), fmt.Sprintf("r1 [[%d]] +[[%d]] -[]", k, k))
		}
	})
}

func TestFiftyClosesInTenMilliseconds(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		const keys = 120
		var watches []*Watch
		for k := range keys {
			n.origin.publish(t, fmt.Sprintf("g/v rows/%d", k), first(1, "[]"))
			watches = append(watches, mustWatch(t, c, k))
		}
		for _, w := range watches {
			next(t, w)
		}
		// One batch is under way already when the others leave.
		for _, w := range watches {
			w.Close()
		}
		began := time.Now()
		for n.origin.openRows() > 0 {
			synctest.Wait()
			batches := int(time.Since(began)/closeInterval) + 2
			if least := keys - batches*closesAtOnce; n.origin.openRows() < least {
				t.Fatalf("%d open after %v", n.origin.openRows(), time.Since(began))
			}
			time.Sleep(closeInterval)
		}
		if d := time.Since(began); d < 2*closeInterval {
			t.Errorf("all closed within %v", d)
		}
	})
}

func TestWatchEndsWithItsContextAndClient(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/7", first(1, "[]"))
		cause := errors.New("page left")
		ctx, cancel := context.WithCancelCause(t.Context())
		a, err := c.Watch(ctx, "g", "v", 7)
		if err != nil {
			t.Fatal(err)
		}
		b := mustWatch(t, c, 7)
		next(t, a)
		next(t, b)
		cancel(cause)
		if _, err := nextOrError(a); !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := nextOrError(b); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if _, err := c.Watch(t.Context(), "g", "v", 8); !errors.Is(err, ErrClosed) {
			t.Errorf("watch of a closed client: %v", err)
		}
	})
}

func TestBadKeys(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, _ *network) {
		for _, key := range []any{nil, []int{1}, math.NaN(), "\xff", uint64(1)} {
			if _, err := c.Watch(t.Context(), "g", "v", key); !errors.Is(err, frame.ErrKey) {
				t.Errorf("%v: %v", key, err)
			}
		}
	})
}

func TestDialFailures(t *testing.T) {
	for _, url := range []string{
		"ftp://127.0.0.1:1", "moq://127.0.0.1", "http://example.com:80", "::", "https:///x", "",
	} {
		if _, err := Dial(t.Context(), url, Config{}); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v", url, err)
		}
	}
	down := errors.New("no route")
	_, err := Dial(t.Context(), "", Config{
		Open: func(context.Context) (protocol.Session, error) { return nil, down },
	})
	if !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}

func TestKeyOverTheLimitSaysWhyItWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.refuse(&protocol.StreamError{Code: protocol.CodeBusy})
		w := mustWatch(t, c, 7)
		synctest.Wait()
		got := w.Waiting()
		if got == nil || got.Code != "busy" || got.Retries != 1 || got.Message == "" || w.Live() {
			t.Fatalf("waiting %+v, live %v", got, w.Live())
		}
		n.origin.publish(t, "g/v rows/7", first(1, "[[7,1]]"))
		time.Sleep(time.Second)
		if got := w.Waiting(); got == nil || got.Retries < 2 {
			t.Errorf("after a second: %+v", got)
		}
		n.origin.refuse(nil)
		wantUpdate(t, next(t, w), "r1 [[7 1]] +[[7 1]] -[]")
		if got := w.Waiting(); got != nil || !w.Live() {
			t.Errorf("waiting %+v, live %v", got, w.Live())
		}
		n.cut(nil)
		synctest.Wait()
		if got := w.Waiting(); got == nil || got.Code != "lost" {
			t.Errorf("after the connection: %+v", got)
		}
		w.Close()
		if got := w.Waiting(); got != nil {
			t.Errorf("after Close: %+v", got)
		}
	})
}

// TestSessionWithoutRoomSaysSo watches a key in a session whose request streams
// are all taken, so that the request cannot even be sent.
func TestSessionWithoutRoomSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		n.origin.publish(t, "g/v rows/0", first(1, "[[0,1]]"))
		for i := range requestStreams {
			n.origin.publish(t, fmt.Sprintf("g/v rows/%d", i), first(1, "[[7,1]]"))
			next(t, mustWatch(t, c, i))
		}
		w := mustWatch(t, c, requestStreams)
		time.Sleep(firstFrameTimeout + time.Millisecond)
		if got := w.Waiting(); got == nil || got.Code != "silent" {
			t.Errorf("waiting %+v", got)
		}
	})
}

func TestKeyTooLongIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, _ *network) {
		long := strings.Repeat("a", 70_000)
		longest := strings.Repeat("a", wire.MaxNameBytes-len("rows/"))
		for name, err := range map[string]error{
			"key":  second(c.Watch(t.Context(), "g", "v", long)),
			"byte": second(c.Watch(t.Context(), "g", "v", longest+"a")),
			"path": second(c.WatchPath(t.Context(), "g", "view", longest)),
			"view": second(c.Watch(t.Context(), "g", long, 1)),
			"meta": second(c.Meta(t.Context(), "g", long)),
		} {
			if !errors.Is(err, frame.ErrKey) || !strings.Contains(err.Error(), "a server takes 4096") {
				t.Errorf("%s: %v", name, err)
			}
		}
		mustWatch(t, c, longest)
	})
}

func second[T any](_ T, err error) error { return err }
