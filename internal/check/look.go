package check

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"tidemark.dev/tidemark/internal/keys"
	"tidemark.dev/tidemark/internal/manifest"
	"tidemark.dev/tidemark/internal/workload"
)

// held is what a config object holds, in all releases that have it alike.
type held struct {
	of       []*manifest.Config
	settings keys.Settings
	opaque   []keys.Opaque
}

// look looks into the config objects of all releases. That is most of the time that a check takes, so what releases have in
// common is looked into once, and as many at a time as there are processors.
func (c *checker) look() {
	contents := c.contents()
	work := make(chan *held)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for h := range work {
				h.settings, h.opaque = keys.Flatten(h.of[0].Data)
			}
		})
	}
	for _, h := range contents {
		work <- h
	}
	close(work)
	workers.Wait()
	c.settings, c.opaque = map[*manifest.Config]keys.Settings{}, map[*manifest.Config][]keys.Opaque{}
	for _, h := range contents {
		for _, config := range h.of {
			c.settings[config], c.opaque[config] = h.settings, h.opaque
		}
	}
}

// contents lists what there is to look into.
func (c *checker) contents() []*held {
	var all []*held
	known := map[workload.Object][]*held{}
	for _, r := range append(slices.Clone(c.Before), c.After) {
		for o, config := range r.Set.Configs {
			i := slices.IndexFunc(known[o], func(h *held) bool { return maps.Equal(h.of[0].Data, config.Data) })
			if i >= 0 {
				known[o][i].of = append(known[o][i].of, config)
				continue
			}
			h := &held{of: []*manifest.Config{config}}
			known[o], all = append(known[o], h), append(all, h)
		}
	}
	return all
}
