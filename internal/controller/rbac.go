package controller

// The rights of the controller, from which `make generate` writes deploy/manifests/role.yaml. Each line is a right that
// something here uses; the acceptance tests run with exactly these.

// Workloads: watched for their templates, patched to write the stamp with its record. There is no create, update or delete.
//+kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=list;watch;patch
//+kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=list;watch;patch
//+kubebuilder:rbac:groups=argoproj.io,resources=rollouts,verbs=list;watch;patch

// Configuration, with the namespaces that carry a mode or a pause.
//+kubebuilder:rbac:groups="",resources=configmaps;secrets;namespaces,verbs=list;watch

// What the look at all fleets reads beside: pods and nodes, and single objects, which adds nothing to the right to list them.
//+kubebuilder:rbac:groups="",resources=pods,verbs=get;list
//+kubebuilder:rbac:groups="",resources=nodes,verbs=get;list
//+kubebuilder:rbac:groups="",resources=configmaps;secrets;namespaces,verbs=get

// What tells whether the deploy of a Helm release lives, and whether a node was cut off: their leases; and the Jobs of its hooks. To mark a pending revision
// failed takes more, which docs/install.md has: it is an option.
//+kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch
//+kubebuilder:rbac:groups=batch,resources=jobs,verbs=get

// What notifications read one by one, which adds nothing to the right to list them: workloads whose values they show, and the namespace
// whose UID tells this cluster from others.
//+kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get
//+kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get
//+kubebuilder:rbac:groups=argoproj.io,resources=rollouts,verbs=get
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// The retained revisions of a workload, listed when its template is not the one that was left.
//+kubebuilder:rbac:groups=apps,resources=replicasets;controllerrevisions,verbs=list

// Events on the workloads; those of leader election still use the core group.
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
//+kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Asked at start, so that a missing right is one clear message and not an endless retry.
//+kubebuilder:rbac:groups=authorization.k8s.io,resources=selfsubjectaccessreviews,verbs=create

// Whether pins are in force, which is said at start.
//+kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingadmissionpolicies;mutatingadmissionpolicybindings,resourceNames=tidemark-pin,verbs=get
//+kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=tidemark-pods;tidemark-workloads,verbs=get

// In Tidemark's own namespace only: leader election, the history of config objects, what people were told of, the key for digests of
// Secrets.
//+kubebuilder:rbac:namespace=tidemark-system,groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update;patch
//+kubebuilder:rbac:namespace=tidemark-system,groups="",resources=configmaps,verbs=create;update;patch;delete
//+kubebuilder:rbac:namespace=tidemark-system,groups="",resources=secrets,verbs=create;get
