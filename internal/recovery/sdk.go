package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"

	"tidemark.dev/tidemark/internal/helm"
	"tidemark.dev/tidemark/internal/release"
)

// sdk is Helm on the records of the release. It logs nowhere: what it logs may hold what a chart was given.
func (c Clients) sdk(seen *Seen, kind string) (*action.Configuration, error) {
	// The SDK takes the name of the program otherwise, and would be another owner of what Helm applied.
	kube.ManagedFieldsManager = helm.FieldManager
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	driver := "secrets"
	if kind == "ConfigMap" {
		driver = "configmaps"
	}
	if err := config.Init(c.Getter, seen.Namespace, driver); err != nil {
		return nil, fmt.Errorf("set up helm: %w", err)
	}
	return config, nil
}

func waitStrategy(wait bool) kube.WaitStrategy {
	if wait {
		return kube.StatusWatcherStrategy
	}
	return kube.HookOnlyStrategy
}

// rollback does what `helm rollback` does, by the apply method that the release was deployed with.
func (c Clients) rollback(ctx context.Context, seen *Seen, r Result, q Request) error {
	if r.Plan.To > math.MaxInt {
		return fmt.Errorf("revision %d is no revision", r.Plan.To)
	}
	config, err := c.sdk(seen, r.Verdict.Newest.Kind)
	if err != nil {
		return err
	}
	do := action.NewRollback(config)
	do.Version = int(r.Plan.To)
	do.Timeout, do.MaxHistory, do.DisableHooks, do.WaitStrategy = q.timeout(), q.HistoryMax, q.NoHooks, waitStrategy(q.Wait)
	do.WaitOptions = []kube.WaitOption{kube.WithWaitContext(ctx)}
	if err := do.Run(seen.Name); err != nil {
		err = errors.Join(err, c.settle(context.WithoutCancel(ctx), seen, r.Verdict.Newest.Number+1))
		return fmt.Errorf("roll release %s in namespace %s back to revision %d: %w", seen.Name, seen.Namespace, r.Plan.To, err)
	}
	return nil
}

// settle marks the revision of a rollback failed that ended with an error, where it was left pending: Helm does that when a hook
// fails. The operation was this process's own, so nobody is at work on it.
func (c Clients) settle(ctx context.Context, seen *Seen, number int64) error {
	now, err := find(ctx, c, seen.Namespace, seen.Name, seen.before)
	if err != nil {
		return err
	}
	newest := release.Judge(now.Input).Newest
	if newest.Number != number || newest.Status != release.PendingRollback {
		return nil
	}
	return helm.MarkFailed(ctx, c.API, seen.Namespace, newest, helm.Mark{Description: "Rollback failed; marked failed"})
}

// uninstall does what `helm uninstall` does.
func (c Clients) uninstall(ctx context.Context, seen *Seen, r Result, q Request) error {
	config, err := c.sdk(seen, r.Verdict.Newest.Kind)
	if err != nil {
		return err
	}
	do := action.NewUninstall(config)
	do.Timeout, do.DisableHooks, do.WaitStrategy = q.timeout(), q.NoHooks, waitStrategy(q.Wait)
	do.WaitOptions = []kube.WaitOption{kube.WithWaitContext(ctx)}
	if _, err := do.Run(seen.Name); err != nil {
		return fmt.Errorf("uninstall release %s in namespace %s: %w", seen.Name, seen.Namespace, err)
	}
	return nil
}
