"""A comparison in twenty parts as an Airflow DAG. The service account may write to the bucket."""

import pendulum
from airflow import DAG
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator

N = 20
PARTS = "s3://evaluations/{{ ts_nodash }}/"
POD = dict(
    image="ghcr.io/spotter-dev/spotter:latest",
    service_account_name="evaluations",
    retries=3,
)

with DAG("spotter-eval", start_date=pendulum.datetime(2026, 1, 1), schedule=None) as dag:
    parts = KubernetesPodOperator.partial(task_id="part", name="part", **POD).expand(
        arguments=[
            ["eval", "web-week", "--policies", "static,portfolio", "--seeds", "100", "--shard", f"{i}/{N}", "--out", PARTS]
            for i in range(1, N + 1)
        ]
    )
    merge = KubernetesPodOperator(task_id="merge", name="merge", arguments=["eval", "merge", PARTS], **POD)
    parts >> merge
