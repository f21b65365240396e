# The Go types of a PodTemplateSpec, written from those of k8s.io/api 1.36 by reflection: Kubernetes itself hashes otherwise with each release
# that adds a field.
berth_text(controllers pod_template_types pod_template.types)
