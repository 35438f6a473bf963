package webhook

// The rights that the webhooks need besides those of the controller and of mode pin; `make generate` writes them into
// deploy/pin/role.yaml.

// The mode and the pause that a namespace states, read when a workload of it is written.
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// The certificate to trust is put into Tidemark's own webhook configurations.
//+kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=tidemark-workloads;tidemark-pods,verbs=get;patch

// The certificate itself, in Tidemark's own namespace. A right to create cannot be limited to a name.
//+kubebuilder:rbac:namespace=tidemark-system,groups="",resources=secrets,verbs=create
//+kubebuilder:rbac:namespace=tidemark-system,groups="",resources=secrets,resourceNames=tidemark-webhook-certificate,verbs=get;patch
