package rollout

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire"
)

// TestPacer runs the pacer through random releases, waits and announcements of other peers, against what the rules say.
func TestPacer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const blocks, charterPace = 3, 4
		p := pacer{
			charterPace: charterPace, basePatience: time.Second, maxPatience: 4 * time.Second,
			order: func(version uint64) []int { return []int{2, 0, 1} },
		}
		elsewhere := map[blockID]bool{}
		announced := func(version uint64, purpose wire.Purpose, block uint64) bool {
			return elsewhere[blockID{version, purpose, block}]
		}
		release := Release{Policy: &Policy{}}
		p.take(release)
		pace, groups, waits := uint64(charterPace), uint64(0), 0
		seen := map[blockID]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				release = Release{
					Policy:           &Policy{Version: release.Version + 1},
					Evaluate:         rapid.Bool().Draw(t, "evaluate"),
					Final:            rapid.IntRange(0, 9).Draw(t, "final") == 0,
					GroupsPerVersion: rapid.Uint32Range(0, 3).Draw(t, "pace"),
				}
				p.take(release)
				pace, groups, waits = uint64(release.GroupsPerVersion), 0, 0
				if pace == 0 {
					pace = charterPace
				}
				clear(seen)
			case 1:
				elsewhere[blockID{
					release.Version,
					rapid.SampledFrom([]wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy}).Draw(t, "purpose"),
					uint64(rapid.IntRange(0, blocks-1).Draw(t, "block")),
				}] = true
			case 2:
				p.take(release) // again
			default:
				measuring := p.measuring(announced)
				s := p.next(announced)
				if measuring != (s.action == actEvaluate) {
					t.Fatalf("measuring is %v before %+v", measuring, s)
				}
				switch s.action {
				case actEvaluate:
					id := blockID{release.Version, s.purpose, s.block}
					if !release.Evaluate && !release.Final || seen[id] || elsewhere[id] || groups > 0 {
						t.Fatalf("evaluates %+v of release %+v after %d groups", id, release, groups)
					}
					seen[id] = true
				case actTrain:
					groups++
					if release.Final || groups > pace*uint64(1+waits) {
						t.Fatalf("group %d of pace %d after %d waits of %+v", groups, pace, waits, release)
					}
				case actWait:
					if want := min(time.Second<<waits, 4*time.Second); release.Final || groups != pace*uint64(1+waits) || s.patience != want {
						t.Fatalf("waits %v after %d groups of pace %d, wait %d of %+v", s.patience, groups, pace, waits, release)
					}
					waits++
					p.expired()
				case actIdle:
					if !release.Final {
						t.Fatalf("idles under %+v", release)
					}
				}
				if s.action == actEvaluate {
					continue
				}
				for block := range uint64(blocks) {
					for _, purpose := range []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
						id := blockID{release.Version, purpose, block}
						if (release.Evaluate || release.Final) && !seen[id] && !elsewhere[id] {
							t.Fatalf("%+v is not evaluated before %+v", id, s)
						}
					}
				}
			}
		}
	})
}
