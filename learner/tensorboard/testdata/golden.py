"""Writes golden.tfevents with TensorBoard's own writer of records and its own messages: pip install tensorboard==2.21.0."""

import pathlib

from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

with open(pathlib.Path(__file__).with_name("golden.tfevents"), "wb") as out:
    records = RecordWriter(out)
    records.write(event_pb2.Event(wall_time=1767323045.25, file_version="brain.Event:2").SerializeToString())
    histogram = summary_pb2.HistogramProto(
        min=0, max=3, num=6, sum=7, sum_squares=15, bucket_limit=[0.5, 1.5, 2.5, 3.5], bucket=[2, 2, 1, 1]
    )
    summary = summary_pb2.Summary(
        value=[
            summary_pb2.Summary.Value(tag="reward/mean", simple_value=0.625),
            summary_pb2.Summary.Value(tag="policy/entropy", simple_value=0.0),
            summary_pb2.Summary.Value(tag="groups/lag", histo=histogram),
        ]
    )
    records.write(event_pb2.Event(wall_time=1767323046.5, step=300, summary=summary).SerializeToString())
