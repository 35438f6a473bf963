package client_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"tidemark.dev/tidemark/lab/client"
	"tidemark.dev/tidemark/lab/client/labtest"
)

// TestLab runs every scenario that leaves the nodes alone, side by side in one lab.
func TestLab(t *testing.T) {
	lab := labtest.Start(t, client.Options{Nodes: 4})
	scenarios := map[string]func(*site){
		"an edit changes mounted files and nothing else":   editInPlace,
		"a container that exits reads the configuration":   exitReadsAnew,
		"projected volumes and Secrets are recorded":       projectedVolumes,
		"a process that reloads takes over an edit":        reloadingProcess,
		"a rolling update and its undo":                    rollingUpdate,
		"a bad configuration stalls with the old pods":     badConfiguration,
		"drain waits for a disruption budget":              drainWithBudget,
		"init containers, a sidecar and a plain container": containerKinds,
		"a job completes and a job fails":                  jobs,
		"a cron job fires":                                 cronJob,
		"a stateful set and a daemon set":                  statefulAndDaemonSet,
		"a service finds its ready pods":                   serviceEndpoints,
		"starts are held at both stages":                   delays,
		"exec and logs":                                    execAndLogs,
		"a pod's server is dialled":                        dialPod,
		"requests are counted":                             requestCounts,
		"a service account has its own rights":             serviceAccount,
		"kubelets send events":                             kubeletEvents,
		"the API has what the product needs":               apiSurface,
		"a missing key is a configuration error":           missingKey,
		"Helm releases, upgrades and rolls back":           helmReleases,
		"a liveness probe restarts a stale process":        livenessRestart,
	}
	for number, name := range slices.Sorted(maps.Keys(scenarios)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenarios[name](newSite(t, lab, fmt.Sprintf("site-%d", number)))
		})
	}
}
