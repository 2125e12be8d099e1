package lite

import (
	"context"

	"github.com/heddle-live/heddle/protocol"
	"github.com/heddle-live/heddle/protocol/moq"
)

// Origin answers a session's requests: what is announced, and the tracks below
// it. It is already scoped to the session's grants. All methods are called from
// many goroutines of many sessions, with ctx ending no later than the session.
//
// An error that is a *protocol.StreamError, or wraps one, chooses the code with
// which the request is refused; any other is logged and becomes CodeInternal.
type Origin interface {
	// Info returns a track's properties. It must not create demand.
	Info(ctx context.Context, broadcast protocol.Path, track string) (moq.Info, error)
	// Subscribe returns a live track and what ends the interest in it: the
	// session calls release exactly once, when the viewer has left.
	Subscribe(ctx context.Context, broadcast protocol.Path, track string) (
		t *moq.Track, release func(), err error)
	// Announcements opens a listing of what lies at or below prefix. A prefix
	// at or below a route has one announcement, with the empty suffix; one that
	// has nothing to do with any route has none, and the listing stays open.
	Announcements(prefix protocol.Path) Announcements
}

// Announcements is one open listing, for one goroutine but for Close.
type Announcements interface {
	// Next returns the initial set at once on the first call, maybe empty; later
	// calls wait for changes. An error ends the listing.
	Next(ctx context.Context) ([]Announcement, error)
	// Close releases the listing; a Next that waits may return.
	Close()
}

// Announcement says that what lies at the listing's prefix plus Suffix can be
// served, or no longer. Hops are oldest first, without the session's own.
type Announcement struct {
	Suffix protocol.Path
	Active bool
	Hops   []protocol.HopID
}
