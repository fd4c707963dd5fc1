"""What is said of rights that are missing."""

from lockstep_cli.doctor.check import Result
from lockstep_cli.doctor.rights import judge_rights


def test_missing_rights_of_one_command_are_one_line() -> None:
    command, other = "kafka-acls --add --group '*'", "kafka-acls --add --cluster"
    missing = [
        f"User:m lacks Describe on group a; to grant it: {command}",
        f"User:m lacks Alter on the cluster; to grant it: {other}",
        f"User:m lacks Describe on group b; to grant it: {command}",
    ]
    groups, cluster = judge_rights("A->B", "B", missing)
    assert groups.detail == "B: User:m lacks Describe on group a, and 1 more that the same command grants"
    assert (groups.result, groups.fix) == (Result.FAILED, command)
    assert (cluster.detail, cluster.fix) == ("B: User:m lacks Alter on the cluster", other)


def test_no_missing_right_is_no_line() -> None:
    assert list(judge_rights("A->B", "B", [])) == []
