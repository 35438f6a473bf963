package cli

import (
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/cluster/cleanup"
	"tidemark.dev/tidemark/internal/snapshot"
)

func (o *gcOptions) print(c *cleanup.Outcome) error {
	for _, r := range c.Remarks {
		fmt.Fprintln(o.ErrOut, "remark:", r)
	}
	for _, q := range c.Quotas {
		fmt.Fprintln(o.ErrOut, "warning:", q)
	}
	switch o.output {
	case "json", "yaml":
		return printDocument(o.Out, o.output, o.document(c))
	case "name":
		return o.printDeleted(c)
	}
	return o.printTable(c)
}

// printDeleted prints what was deleted, or would be, as arguments that kubectl takes.
func (o *gcOptions) printDeleted(c *cleanup.Outcome) error {
	for _, item := range c.Items {
		if item.Action != snapshot.Delete || !item.Done && !o.would(item) {
			continue
		}
		if _, err := fmt.Fprintln(o.Out, item.Object.Relative(item.Object.Namespace)); err != nil {
			return err
		}
	}
	return nil
}

// would reports whether a dry run of the item found nothing in its way.
func (o *gcOptions) would(item cleanup.Item) bool {
	return o.cleanup.DryRun && item.Left == "" && item.Err == nil
}

func (o *gcOptions) printTable(c *cleanup.Outcome) error {
	w := printers.GetNewTabWriter(o.Out)
	line := func(namespace string, columns ...string) {
		if o.withNamespace {
			columns = append([]string{namespace}, columns...)
		}
		fmt.Fprintln(w, strings.Join(columns, "\t"))
	}
	printed := false
	for _, item := range c.Items {
		if item.Action == snapshot.Keep && item.Reason != snapshot.Waiting && o.output != "wide" {
			continue
		}
		if !printed {
			line("NAMESPACE", "OBJECT", "ACTION", "REASON")
			printed = true
		}
		line(item.Object.Namespace, item.Object.Relative(item.Object.Namespace), o.actionText(item), reasonOf(item))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(o.ErrOut, o.summary(c))
	return nil
}

var (
	wouldBe = map[snapshot.Action]string{
		snapshot.Keep: "to keep", snapshot.Condemn: "to condemn", snapshot.Pardon: "to pardon", snapshot.Delete: "to delete",
	}
	hasBeen = map[snapshot.Action]string{
		snapshot.Keep: "kept", snapshot.Condemn: "condemned", snapshot.Pardon: "pardoned", snapshot.Delete: "deleted",
	}
)

func (o *gcOptions) actionText(item cleanup.Item) string {
	switch {
	case item.Err != nil || item.Left != "":
		return "not " + hasBeen[item.Action]
	case o.cleanup.DryRun:
		return wouldBe[item.Action]
	}
	return hasBeen[item.Action]
}

func reasonOf(item cleanup.Item) string {
	switch {
	case item.Err != nil:
		return item.Detail + "; failed: see the error"
	case item.Left != "":
		return item.Detail + "; left for the next run: " + item.Left
	}
	return item.Detail
}

// summary counts what was done: "16 snapshots in namespace shop: 12 kept, 3 condemned, 1 deleted".
func (o *gcOptions) summary(c *cleanup.Outcome) string {
	what, where, how := "snapshots", "in any namespace", ""
	if o.release != "" {
		what = "objects left by release " + o.release
	}
	if o.cleanup.Namespace != "" {
		where = "in namespace " + o.cleanup.Namespace
	}
	if len(c.Items) == 0 {
		return fmt.Sprintf("No %s found %s.", what, where)
	}
	if o.cleanup.DryRun {
		how = " (dry run)"
	}
	count := map[string]int{}
	for _, item := range c.Items {
		count[o.actionText(item)]++
	}
	var words []string
	for _, action := range []snapshot.Action{snapshot.Keep, snapshot.Pardon, snapshot.Condemn, snapshot.Delete} {
		for _, text := range []string{wouldBe[action], hasBeen[action], "not " + hasBeen[action]} {
			if count[text] > 0 {
				words = append(words, fmt.Sprintf("%d %s", count[text], text))
			}
		}
	}
	return fmt.Sprintf("%d %s %s%s: %s", len(c.Items), what, where, how, strings.Join(words, ", "))
}

func (o *gcOptions) document(c *cleanup.Outcome) v1.Cleanup {
	d := v1.Cleanup{
		APIVersion: v1.APIVersion, Kind: v1.KindCleanup, Time: seconds(c.Now), DryRun: o.cleanup.DryRun,
		History: o.cleanup.Retention.History, MinAge: o.cleanup.Retention.MinAge.String(), HelmRelease: o.release,
		Items: []v1.CleanupItem{}, Remarks: c.Remarks,
	}
	for _, item := range c.Items {
		i := v1.CleanupItem{
			Object: item.Object.String(), Source: item.Source.String(), Revision: item.Revision, Created: seconds(item.Created),
			Action: string(item.Action), Done: item.Done, Reason: string(item.Reason), Detail: item.Detail,
			Condemned: seconds(item.Condemned), Until: seconds(item.Until), Problem: item.Left,
		}
		if item.Err != nil {
			i.Problem = item.Err.Error()
		}
		d.Items = append(d.Items, i)
	}
	for _, q := range c.Quotas {
		d.Quotas = append(d.Quotas, v1.CleanupQuota{Namespace: q.Namespace, Name: q.Name, Resource: q.Resource, Used: q.Used, Hard: q.Hard})
	}
	return d
}
