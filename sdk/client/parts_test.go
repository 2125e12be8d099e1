package client

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/heddle-live/heddle/protocol/moq"
	"github.com/heddle-live/heddle/sdk/frame"
)

// parted is a frame of a view with parts; more are further members.
func parted(revision int, parts, more string) string {
	return fmt.Sprintf(`{"revision":%d,"epoch":%q,"schema":1,"parts":{%s}%s}`,
		revision, epoch, parts, more)
}

// wantParts compares "a [[1]] +[[1]] -[]; b …" with the parts of u.
func wantParts(t *testing.T, u Update, revision uint64, want string) {
	t.Helper()
	list := func(rows []frame.Row) string { return strings.ReplaceAll(fmt.Sprint(rows), "] [", "][") }
	var parts []string
	for _, p := range u.Parts {
		s := fmt.Sprintf("%s %s +%s -%s", p.Name, list(p.Rows), list(p.Entered), list(p.Left))
		if p.Stale != nil {
			s += " stale:" + p.Stale.Code
		}
		parts = append(parts, s)
	}
	if got := strings.Join(parts, "; "); got != want || u.Revision != revision {
		t.Errorf("revision %d\ngot  %s\nwant %s at %d", u.Revision, got, want, revision)
	}
}

func TestNamedParts(t *testing.T) {
	bubble(t, func(t *testing.T, c *Client, n *network) {
		track := "g/v rows/7"
		n.origin.publish(t, track, parted(1,
			`"a":{"snapshot":[[1],[2]]},"b":{"snapshot":[]}`, `,"last":true`))
		w, late := mustWatch(t, c, 7), mustWatch(t, c, 7)
		u := next(t, w)
		wantParts(t, u, 1, "a [[1][2]] +[[1][2]] -[]; b [] +[] -[]")
		if u.Rows != nil || len(u.Part("a").Rows) != 2 || u.Part("z").Name != "" {
			t.Errorf("%+v", u)
		}
		next(t, late)

		appendFrame := func(text string) {
			t.Helper()
			if err := n.origin.track(track).AppendFrame(moq.Frame{Payload: []byte(text)}); err != nil {
				t.Fatal(err)
			}
		}
		appendFrame(parted(2, `"b":{"insert":[[9]]}`, `,"base":1`))
		wantParts(t, next(t, w), 2, "a [[1][2]] +[] -[]; b [[9]] +[[9]] -[]")
		appendFrame(parted(3, `"a":{"insert":[[3]],"retract":[[1]],"stale":{"code":"error","message":"x"}}`,
			`,"base":2`))
		wantParts(t, next(t, w), 3, "a [[2][3]] +[[3]] -[[1]] stale:error; b [[9]] +[] -[]")
		// What a slow loop missed comes as one difference.
		synctest.Wait()
		wantParts(t, next(t, late), 3, "a [[2][3]] +[[3]] -[[1]] stale:error; b [[9]] +[[9]] -[]")
		current, _ := w.Current()
		wantParts(t, current, 3, "a [[2][3]] +[] -[] stale:error; b [[9]] +[] -[]")

		// A program with other parts: a part that is gone leaves with its rows.
		n.origin.publish(t, track, parted(4, `"a":{"snapshot":[[2],[3]]}`, `,"last":true`))
		wantParts(t, next(t, w), 4, "a [[2][3]] +[] -[]; b [] +[] -[[9]]")
		wantParts(t, next(t, late), 4, "a [[2][3]] +[] -[]; b [] +[] -[[9]]")
		// The same group again is no news.
		n.origin.publish(t, track, parted(4, `"a":{"snapshot":[[2],[3]]}`, `,"last":true`))
		n.origin.publish(t, track, parted(5, `"a":{"snapshot":[]}`, `,"last":true`))
		wantParts(t, next(t, w), 5, "a [] +[] -[[2][3]]")
	})
}
