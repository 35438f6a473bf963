package main

import (
	"context"
	"fmt"

	"tidemark.dev/tidemark/lab/client"
)

var fanOut = benchmark{
	name: "fanout", title: "Fan-out: one ConfigMap, 1,000 Deployments",
	lab: client.Options{NoNodes: true},
	run: func(ctx context.Context, s *site) (report, error) {
		r := &race{site: s, n: 1000, configMap: shared}
		return r.run(ctx, []lane{
			{name: "bare loop, one at a time", run: r.bare(1)},
			{name: fmt.Sprintf("bare loop, %d at a time", workers), run: r.bare(workers)},
			{name: fmt.Sprintf("controller, %d at a time", workers), run: r.controller(1), tidemark: true},
		})
	},
}

var manyToMany = benchmark{
	name: "many", title: "Many to many: 1,000 ConfigMaps, each with its Deployment, all edited",
	lab: client.Options{NoNodes: true},
	run: func(ctx context.Context, s *site) (report, error) {
		r := &race{site: s, n: 1000, edits: 1000, configMap: numbered}
		return r.run(ctx, []lane{
			{name: "bare loop, edit and patch, one at a time", run: r.bare(1)},
			{name: fmt.Sprintf("bare loop, edit and patch, %d at a time", workers), run: r.bare(workers)},
			{name: fmt.Sprintf("controller, edits %d at a time", workers), run: r.controller(workers), tidemark: true},
		})
	},
}
