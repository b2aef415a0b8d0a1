"""Readers of public files, on small files of the same form that the tests write."""

import gzip
import struct

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from lgmd.datasets import (
    read_ghcn_daily,
    read_gsod,
    read_idx,
    read_mnist,
    read_movielens,
    read_netflix_prize,
    read_tdt2,
)
from lgmd.datasets.readers import netflix_prize
from lgmd.exceptions import InvalidDataError, InvalidParameterError, MissingDataError

STATION = "USW00013874"


def dly_line(year, month, element, values, flags=None, station=STATION):
    """One month: `values` in tenths of a degree from day 1, None where missing; `flags` are quality flags by day."""
    padded = list(values) + [None] * (31 - len(values))
    cells = [
        f"{-9999 if value is None else value:5d} {(flags or {}).get(day, ' ')}{' ' if value is None else 'W'}"
        for day, value in enumerate(padded, start=1)
    ]
    return f"{station}{year:04d}{month:02d}{element}" + "".join(cells)


@pytest.fixture
def january(tmp_path):
    """A station with maxima, minima, averages and rain of one January and February."""
    lines = [
        dly_line(2018, 1, "PRCP", [0, 25, 30]),
        dly_line(2018, 1, "TMAX", [100, -50, None, 289, 44], {4: "X"}),
        dly_line(2018, 1, "TMIN", [0, -250, -10, 11, None]),
        dly_line(2018, 1, "TAVG", [47, -139]),
        dly_line(2018, 2, "TMAX", [None] * 27 + [150]),
    ]
    path = tmp_path / f"{STATION}.dly"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_fixed_columns_give_values_without_gaps_and_failed_checks(january):
    maxima = read_ghcn_daily(january, "TMAX", unit="C")
    np.testing.assert_array_equal(maxima.values[0, :6], [10.0, -5.0, np.nan, np.nan, 4.4, np.nan])
    assert maxima.values.shape == (1, 31 + 28)
    assert maxima.values[0, -1] == 15.0
    assert str(maxima.dates[-1]) == "2018-02-28"
    assert list(maxima.station_ids) == [STATION]
    assert np.isnan(maxima.latitude[0])
    np.testing.assert_allclose(read_ghcn_daily(january, "TMAX").values, maxima.values * 9 / 5 + 32)


def test_the_mean_needs_both_extremes(january):
    mean = read_ghcn_daily(january, unit="C", end="2018-01-06")
    np.testing.assert_allclose(mean.values, [[5.0, -15.0, np.nan, np.nan, np.nan, np.nan]])
    np.testing.assert_allclose(read_ghcn_daily(january, "TAVG", unit="C").values, [[4.7, -13.9]])


def test_start_and_end_cut_or_widen_the_table(january):
    wide = read_ghcn_daily(january, "TAVG", "2017-12-31", np.datetime64("2018-01-03"), unit="C")
    np.testing.assert_allclose(wide.values, [[np.nan, 4.7, -13.9, np.nan]])
    narrow = read_ghcn_daily(january, "TAVG", "2018-01-02", "2018-01-02", unit="C")
    np.testing.assert_allclose(narrow.values, [[-13.9]])
    with pytest.raises(InvalidParameterError, match="start, 2018-02-01, is after end, 2018-01-02"):
        read_ghcn_daily(january, "TAVG", "2018-02-01", "2018-01-02")
    with pytest.raises(InvalidParameterError, match=r"end must be a date such as .* but is 'soon'"):
        read_ghcn_daily(january, "TAVG", end="soon")
    with pytest.raises(InvalidDataError, match="No station has TAVG between 1999-01-01 and 1999-12-31"):
        read_ghcn_daily(january, "TAVG", "1999-01-01", "1999-12-31")
    with pytest.raises(InvalidDataError, match="The last value of TAVG is of 2018-01-02, before start, 2019-01-01"):
        read_ghcn_daily(january, "TAVG", start="2019-01-01")
    with pytest.raises(InvalidDataError, match="The first value of TAVG is of 2018-01-01, after end, 2017-01-01"):
        read_ghcn_daily(january, "TAVG", end="2017-01-01")


def test_a_leap_day_exists_in_leap_years_only(tmp_path):
    path = tmp_path / "a.dly"
    path.write_text(dly_line(2020, 2, "TMAX", list(range(29))))
    assert str(read_ghcn_daily(path, "TMAX").dates[-1]) == "2020-02-29"
    path.write_text(dly_line(2019, 2, "TMAX", list(range(29))))
    with pytest.raises(InvalidDataError, match="line 1: 2019-02 has a value after its last day, the 28th"):
        read_ghcn_daily(path, "TMAX")


def test_stations_of_several_files_share_the_days(january, tmp_path):
    other = dly_line(2018, 1, "TAVG", [None, None, 5], station="USC00026481")
    # As some tools leave it: other line ends, a blank line, blank flags stripped at the end.
    (tmp_path / "USC00026481.dly.gz").write_bytes(gzip.compress((other.rstrip() + "\r\n\r\n").encode()))
    (tmp_path / "notes.txt").write_text("not a station")
    places = tmp_path / "ghcnd-stations.txt"
    places.write_text(
        "USC00026481  33.4278 -112.0039  337.4 AZ PHOENIX AP                     GSN     72278\n"
        f"{STATION}  33.6297  -84.4422 -999.9 GA ATLANTA HARTSFIELD\n"
    )
    table = read_ghcn_daily(tmp_path, "TAVG", unit="C", stations=places)
    assert list(table.station_ids) == ["USC00026481", STATION]
    np.testing.assert_allclose(table.values, [[np.nan, np.nan, 0.5], [4.7, -13.9, np.nan]])
    assert list(table.names) == ["PHOENIX AP", "ATLANTA HARTSFIELD"]
    assert list(table.states) == ["AZ", "GA"]
    np.testing.assert_array_equal(table.altitude, [337.4, np.nan])
    np.testing.assert_array_equal(table.longitude, [-112.0039, -84.4422])
    reversed_order = read_ghcn_daily([january, tmp_path / "USC00026481.dly.gz"], "TAVG")
    assert list(reversed_order.station_ids) == [STATION, "USC00026481"]


def test_a_station_without_the_element_stays_as_an_empty_row(january, tmp_path):
    bare = tmp_path / "bare.dly"
    bare.write_text(dly_line(2018, 1, "PRCP", [3], station="USC00000001"))
    table = read_ghcn_daily([january, bare], "TAVG")
    assert table.values.shape == (2, 2)
    assert np.isnan(table.values[1]).all()
    with pytest.raises(InvalidDataError, match="The files have no value of TAVG"):
        read_ghcn_daily(bare, "TAVG")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda line: line[:200], "line 2: there are 200 characters, but a GHCN-daily line has 269"),
        (lambda line: line + " more", "line 2: there are 274 characters"),
        (lambda line: line[:21] + " 1.25" + line[26:], "line 2: a value is ' 1.25', but an integer was expected"),
        (lambda line: line[:15] + "13" + line[17:], "line 2: the month is 13"),
        (lambda line: line[:11] + "19x8" + line[15:], "line 2: the year is '19x8'"),
    ],
)
def test_bad_lines_of_fixed_columns_are_named(tmp_path, spoil, message):
    path = tmp_path / "bad.dly"
    path.write_text("\n".join([dly_line(2018, 1, "TMAX", [1]), spoil(dly_line(2018, 3, "TMAX", [2]))]))
    with pytest.raises(InvalidDataError, match=message) as caught:
        read_ghcn_daily(path, "TMAX")
    assert str(path) in str(caught.value)


def test_a_file_passed_twice_is_harmless_but_a_contradiction_is_not(january, tmp_path):
    np.testing.assert_array_equal(read_ghcn_daily([january, january]).values, read_ghcn_daily(january).values)
    other = tmp_path / "other.dly"
    other.write_text(dly_line(2018, 1, "TAVG", [47, -138]))
    with pytest.raises(InvalidDataError, match=rf"Station {STATION} has two different values of TAVG on 2018-01-02"):
        read_ghcn_daily([january, other], "TAVG")


@pytest.mark.parametrize("header", ["", "ID,DATE,ELEMENT,DATA_VALUE,M_FLAG,Q_FLAG,S_FLAG,OBS_TIME\n"])
def test_the_form_by_station(tmp_path, header):
    path = tmp_path / f"{STATION}.csv"
    rows = ["20180101,TMAX,100,,,W,2400", "20180101,TMIN,0,,,W,2400", "20180103,TMAX,90,,X,W,", "20180103,TMIN,1,,,W,"]
    path.write_text(header + "".join(f"{STATION},{row}\n" for row in rows))
    np.testing.assert_allclose(read_ghcn_daily(path, unit="C").values[0, 0], 5.0)
    np.testing.assert_allclose(read_ghcn_daily(path, "TMIN", unit="C").values, [[0.0, np.nan, 0.1]])
    np.testing.assert_allclose(read_ghcn_daily(path, "TMAX", unit="C").values, [[10.0]])
    line = len(rows) + 1 + bool(header)
    for torn, message in (
        (f"{STATION},2018", rf"line {line}: there are 2 fields, but 8 were expected"),
        (f"{STATION},20180104,TMAX,4", rf"line {line}: there are 4 fields, but 8 were expected"),
        (f"{STATION},20180104,TMAX,418,", rf"line {line}: there are 5 fields, but 8 were expected"),
        (f"{STATION},2018,TMAX,1,,,W,", rf"line {line}: DATE is '2018'"),
        (f"{STATION},20180104,TMAX,,,,W,", rf"line {line}: DATA_VALUE is empty, but a number was expected"),
        (f"{STATION},20180104,TMAX,41.8,,,W,", rf"line {line}: DATA_VALUE is '41\.8', but whole tenths of a degree"),
        (f"{STATION},20180104,TMAX,hot,,,W,", rf"line {line}: DATA_VALUE is 'hot', but a number was expected"),
        (f"{STATION},20180230,TMAX,1,,,W,", rf"line {line}: DATE is '20180230'"),
    ):
        path.write_text(header + "".join(f"{STATION},{row}\n" for row in rows) + torn)
        with pytest.raises(InvalidDataError, match=message):
            read_ghcn_daily(path)


def test_the_form_for_access(tmp_path):
    path = tmp_path / f"{STATION}.csv"
    path.write_text(
        '"STATION","DATE","LATITUDE","LONGITUDE","ELEVATION","NAME","TMAX","TMAX_ATTRIBUTES","TMIN","TMIN_ATTRIBUTES"\n'
        f'"{STATION}","2018-01-01","33.6","-84.4","308.2","ATLANTA AIRPORT, GA US","  100",",,W,2400","    0",",,W"\n'
        f'"{STATION}","2018-01-02","33.6","-84.4","308.2","ATLANTA AIRPORT, GA US","  300",",I,W","   20",",,W"\n'
        f'"{STATION}","2018-01-03","33.6","-84.4","308.2","ATLANTA AIRPORT, GA US","   40",",,W","   20",",,W"\n'
        f'"{STATION}","2018-01-04","33.6","-84.4","308.2","ATLANTA AIRPORT, GA US","","","   10",",,W"\n'
    )
    table = read_ghcn_daily(path, unit="C")
    np.testing.assert_allclose(table.values, [[5.0, np.nan, 3.0, np.nan]])
    assert (table.names[0], table.states[0], table.altitude[0]) == ("ATLANTA AIRPORT, GA US", "GA", 308.2)
    with pytest.raises(InvalidDataError, match="no value of TAVG"):
        read_ghcn_daily(path, "TAVG")
    whole = path.read_text()
    path.write_text(whole + f'"{STATION}","2018-01-05","33.6","-84.4","308.2","ATLANTA AIRPORT, GA US","  300"')
    with pytest.raises(InvalidDataError, match="line 6: there are 7 fields, but 10 were expected"):
        read_ghcn_daily(path)


def test_a_file_without_lines_says_so(tmp_path):
    path = tmp_path / f"{STATION}.csv"
    for content in ("", "\n \n"):
        path.write_text(content)
        with pytest.raises(InvalidDataError, match=rf"{STATION}\.csv is empty"):
            read_ghcn_daily(path, "TMAX")
    for names in ("ID,DATE,ELEMENT,DATA_VALUE,M_FLAG,Q_FLAG,S_FLAG,OBS_TIME\n", ACCESS_NAMES):
        path.write_text(names)
        with pytest.raises(InvalidDataError, match="names of columns, but no line of a station"):
            read_ghcn_daily(path, "TMAX")


ACCESS_NAMES = '"STATION","DATE","LATITUDE","LONGITUDE","ELEVATION","NAME","TMAX","TMIN"\n'


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_an_unknown_height_is_a_gap_with_a_byte_order_mark_or_without(tmp_path, mark):
    path = tmp_path / f"{STATION}.csv"
    line = f'"{STATION}","2018-01-01","33.6","-84.4","-999.9","ATLANTA AIRPORT, GA US","  100","    0"\n'
    path.write_bytes(mark + (ACCESS_NAMES + line).encode())
    table = read_ghcn_daily(path, unit="C")
    np.testing.assert_array_equal(table.values, [[5.0]])
    assert (table.latitude[0], table.states[0]) == (33.6, "GA")
    assert np.isnan(table.altitude[0])
    by_station = tmp_path / "by_station.csv"
    by_station.write_bytes(mark + f"{STATION},20180101,TMAX,100,,,W,2400\n".encode())
    assert read_ghcn_daily(by_station, "TMAX", unit="C").station_ids.tolist() == [STATION]


def test_a_fraction_is_no_tenth_of_a_degree(tmp_path):
    path = tmp_path / f"{STATION}.csv"
    path.write_text(f"STATION,DATE,TMAX\n{STATION},2018-01-01,100\n{STATION},2018-01-02,12.8\n")
    with pytest.raises(InvalidDataError, match=r"line 3: TMAX is '12\.8', but whole tenths of a degree Celsius"):
        read_ghcn_daily(path, "TMAX")


def write_order(path, *readings):
    """An order from Climate Data Online: a maximum and a minimum a day, as text."""
    lines = [
        f'"{STATION}","ATLANTA AIRPORT, GA US","2018-01-{day:02d}",{high},{low}\n'
        for day, (high, low) in enumerate(readings, start=1)
    ]
    path.write_text('"STATION","NAME","DATE","TMAX","TMIN"\n' + "".join(lines))


def test_an_order_with_decimals_is_in_degrees_celsius(tmp_path):
    path = tmp_path / "3812345.csv"
    write_order(path, ('"12.8"', '"2.2"'), ('"10.0"', ""), ('"-0.6"', '"-7.8"'))
    table = read_ghcn_daily(path, unit="C")
    np.testing.assert_allclose(table.values, [[7.5, np.nan, -4.2]])
    assert (table.names[0], table.states[0]) == ("ATLANTA AIRPORT, GA US", "GA")


@pytest.mark.parametrize("text", ['"{}"', '"{}.0"'])
def test_an_order_in_whole_degrees_is_refused_with_advice(tmp_path, text):
    path = tmp_path / "3812345.csv"
    write_order(path, *((text.format(high), text.format(high - 15)) for high in (55, 50, 31)))
    with pytest.raises(InvalidDataError, match=r"order from Climate Data Online.*Order it in metric units") as caught:
        read_ghcn_daily(path)
    assert str(path) in str(caught.value)


def test_an_order_without_temperatures_says_that_there_are_none(tmp_path):
    path = tmp_path / "3812345.csv"
    write_order(path, ("", ""))
    with pytest.raises(InvalidDataError, match="no value of TMAX"):
        read_ghcn_daily(path)


GSOD_NAMES = '"STATION","DATE","LATITUDE","LONGITUDE","ELEVATION","NAME","TEMP","TEMP_ATTRIBUTES","MAX","MIN"\n'


def gsod_line(date, temp, high, low, station="72315003812", name="ASHEVILLE REGIONAL AIRPORT, NC US"):
    return f'"{station}","{date}","35.43","-82.54","645.3","{name}","{temp}","24","{high}","{low}"\n'


@pytest.fixture
def asheville(tmp_path):
    """Two years of a station, in a file each."""
    for year, lines in {
        2018: gsod_line("2018-12-30", "  41.5", "  50.0", "  33.0")
        + gsod_line("2018-12-31", "9999.9", "  60.1", "9999.9"),
        2019: gsod_line("2019-01-01", "  52.0", "  61.0", "  43.0"),
    }.items():
        (tmp_path / str(year)).mkdir()
        (tmp_path / str(year) / "72315003812.csv").write_text(GSOD_NAMES + lines)
    return [tmp_path / "2018", tmp_path / "2019"]


def test_years_of_a_station_are_put_together(asheville):
    table = read_gsod(asheville)
    np.testing.assert_array_equal(table.values, [[41.5, np.nan, 52.0]])
    assert (table.station_ids[0], table.states[0], table.latitude[0]) == ("72315003812", "NC", 35.43)
    assert str(table.dates[0]) == "2018-12-30"
    np.testing.assert_array_equal(read_gsod(asheville, "MAX").values, [[50.0, 60.1, 61.0]])
    np.testing.assert_array_equal(read_gsod(asheville, "mean").values, [[41.5, np.nan, 52.0]])
    np.testing.assert_allclose(read_gsod(asheville[1], unit="C").values, [[100 / 9]])


@pytest.mark.parametrize("height", ["-999.0", "-999.9"])
def test_an_unknown_height_of_a_summary_is_a_gap(tmp_path, height):
    path = tmp_path / "72315003812.csv"
    path.write_text(GSOD_NAMES + gsod_line("2018-01-01", 1, 2, 0).replace("645.3", height))
    assert np.isnan(read_gsod(path).altitude[0])
    path.write_text(GSOD_NAMES + gsod_line("2018-01-01", 1, 2, 0).replace("645.3", "-86.0"))
    assert read_gsod(path).altitude[0] == -86.0


def test_a_first_line_that_is_too_long_is_refused_without_names_too(tmp_path):
    path = tmp_path / f"{STATION}.csv"
    path.write_text(f"{STATION},20180101,TMAX,100,,,W,2400,more\n{STATION},20180102,TMAX,100,,,W,2400\n")
    with pytest.raises(InvalidDataError, match="line 1: there are 9 fields, but 8 were expected"):
        read_ghcn_daily(path, "TMAX")


def test_bad_summaries_are_named(tmp_path):
    path = tmp_path / "bad.csv"
    good = GSOD_NAMES + gsod_line("2018-01-01", 1, 2, 0)
    for content, message in (
        (good.replace("TEMP", "HEAT"), "line 1: there is no column TEMP"),
        (good + gsod_line("2018-01-02", "warm", 2, 0), "line 3: TEMP is 'warm', but a number was expected"),
        (good + "\n" + gsod_line("2018/01/02", 1, 2, 0), "line 4: DATE is '2018/01/02'"),
        (
            good + '"72315003812","2018-01-02","35.43","-82.54","645.3","A","1","24","2","0","9"\n',
            "line 3: there are 11 fields, but 10 were expected",
        ),
        (
            GSOD_NAMES + '"72315003812","2018-01-02","35.43","-82.54","645.3","A","1","24","2","0","9"\n',
            "line 2: there are 11 fields, but 10 were expected",
        ),
        (
            good + "72315003812,2018-01-02,35.43,-82.54,645.3,ASHEVILLE,5",
            "line 3: there are 7 fields, but 10 were expected",
        ),
        (good + gsod_line("2018-01-02", "51.5", "60.0", 43)[:-3], "is no comma-separated table"),
        (good + gsod_line("2018-01-02", "inf", 2, 0), "line 3: TEMP is 'inf', but a number was expected"),
        (good + gsod_line("2018-01-02", "-1e999", 2, 0), "line 3: TEMP is '-1e999', but a number was expected"),
        ("", "no comma-separated table"),
        (GSOD_NAMES, "no line of a station"),
        (GSOD_NAMES + gsod_line("2018-01-01", "9999.9", 2, 0), "no value of TEMP"),
    ):
        path.write_text(content)
        with pytest.raises(InvalidDataError, match=message):
            read_gsod(path)


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"There is no file or folder .*nowhere"):
        read_gsod(tmp_path / "nowhere")
    with pytest.raises(MissingDataError, match=r"has no file \*\.dly or \*\.csv"):
        read_ghcn_daily(tmp_path)
    with pytest.raises(InvalidParameterError, match="paths is empty"):
        read_netflix_prize([])
    for read in (read_idx, read_tdt2, read_movielens):
        with pytest.raises(MissingDataError, match=r"There is no file .*nowhere"):
            read(tmp_path / "nowhere")
    with pytest.raises(InvalidParameterError, match="element must be one of"):
        read_ghcn_daily(tmp_path, "RAIN")
    with pytest.raises(InvalidParameterError, match="unit must be one of 'F', 'C'"):
        read_gsod(tmp_path, unit="K")


def write_prize(path, table, users, movies, line_end="\n"):
    """Write a dense table, zero where unrated, as the Prize did: film after film."""
    lines = []
    for column, movie in enumerate(movies):
        lines.append(f"{movie}:")
        lines += [
            f"{users[row]},{table[row, column]},2005-09-{row % 30 + 1:02d}" for row in np.flatnonzero(table[:, column])
        ]
    path.write_bytes((line_end.join(lines) + line_end).encode())


@pytest.fixture
def prize():
    rng = np.random.default_rng(0)
    table = rng.integers(1, 6, (30, 8)) * (rng.random((30, 8)) < rng.uniform(0.2, 0.9, (30, 8)))
    table[:, 3] = 0
    users = np.sort(rng.choice(np.concatenate(([1], np.arange(2, 2_649_430))), 30, replace=False))
    return table, users, np.array([1, 2, 9, 10, 11, 500, 4499, 17770])


@pytest.mark.parametrize("block", [16, 37, 1 << 25])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_prize_ratings_are_read_whatever_the_blocks(tmp_path, prize, monkeypatch, block, line_end):
    table, users, movies = prize
    monkeypatch.setattr(netflix_prize, "_BLOCK", block)
    write_prize(tmp_path / "combined_data_1.txt", table[:, :5], users, movies[:5], line_end)
    write_prize(tmp_path / "combined_data_2.txt", table[:, 5:], users, movies[5:], line_end)
    data = read_netflix_prize(tmp_path)
    rated, seen = table.any(axis=1), table.any(axis=0)
    np.testing.assert_array_equal(data.user_ids, users[rated])
    np.testing.assert_array_equal(data.item_ids, movies[seen])
    np.testing.assert_array_equal(data.ratings.toarray(), table[rated][:, seen])
    assert data.ratings.nnz == np.count_nonzero(table)


def test_ratings_may_follow_a_byte_order_mark(tmp_path):
    mark = b"\xef\xbb\xbf"
    prize = b"1:\n5,3,2005-09-06\n"
    for name, content in (("mv_0000001.txt", mark + prize), ("mv_0000001.txt.gz", gzip.compress(mark + prize))):
        (tmp_path / name).write_bytes(content)
        assert read_netflix_prize(tmp_path / name).user_ids.tolist() == [5]
    for form in ("u.data", "ratings.dat", "ratings.csv"):
        path = tmp_path / form
        path.write_bytes(mark + movielens_text(form).encode())
        assert read_movielens(path).user_ids.tolist() == [22, 196]
        path.write_bytes(mark + movielens_text(form).encode() + b"torn")
        with pytest.raises(InvalidDataError, match=rf"line {4 + (form == 'ratings.csv')}: found 'torn'"):
            read_movielens(path)


def test_other_files_in_the_folder_of_the_prize_are_left_aside(tmp_path, prize):
    table, users, movies = prize
    write_prize(tmp_path / "combined_data_1.txt", table[:, :3], users, movies[:3])
    write_prize(tmp_path / "mv_0000500.txt", table[:, 5:6], users, movies[5:6])
    (tmp_path / "mv_0000500.txt.gz").write_bytes(gzip.compress((tmp_path / "mv_0000500.txt").read_bytes()))
    (tmp_path / "mv_0000500.txt").unlink()
    (tmp_path / "probe.txt").write_text("1:\n30878\n")
    (tmp_path / "qualifying.txt").write_text("1:\n1046323,2005-12-19\n")
    (tmp_path / "movie_titles.txt").write_text("1,2003,Dinosaur Planet\n")
    data = read_netflix_prize(tmp_path)
    np.testing.assert_array_equal(data.item_ids, movies[[0, 1, 2, 5]])
    for path in tmp_path.glob("*_*[0-9].txt*"):
        path.unlink()
    with pytest.raises(MissingDataError, match=r"has no file combined_data_\*\.txt or mv_\*\.txt"):
        read_netflix_prize(tmp_path)


def test_the_dense_corner_of_the_prize(tmp_path, prize):
    table, users, movies = prize
    write_prize(tmp_path / "all.txt", table, users, movies)
    (tmp_path / "all.txt.gz").write_bytes(gzip.compress((tmp_path / "all.txt").read_bytes()))
    corner = read_netflix_prize(tmp_path / "all.txt.gz", n_users=6, n_movies=3)
    kept = np.sort(sorted(range(8), key=lambda column: (-np.count_nonzero(table[:, column]), column))[:3])
    rows = np.sort(sorted(range(30), key=lambda row: (-np.count_nonzero(table[row, kept]), row))[:6])
    np.testing.assert_array_equal(corner.item_ids, movies[kept])
    np.testing.assert_array_equal(corner.user_ids, users[rows])
    np.testing.assert_array_equal(corner.ratings.toarray(), table[np.ix_(rows, kept)])
    with pytest.raises(InvalidParameterError, match="n_users must be at least 1"):
        read_netflix_prize(tmp_path / "all.txt", n_users=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1:\n5,3,2005-09-06\n7,4,2005-0", r"line 3: found '7,4,2005-0', but 'movie:' or 'user,rating,YYYY-MM-DD'"),
        ("1:\n5,3,2005-09-06\n7,6,2005-09-06\n", "line 3: found '7,6,2005-09-06'"),
        ("1:\n5,3,xxxx-yy-zz\n", "line 2: found '5,3,xxxx-yy-zz'"),
        ("1:\n5,3,2005-09-06\n7,4,2005-09-0 \n", "line 3: found '7,4,2005-09-0 '"),
        ("1:\n1046323,2005-12-19\n", "line 2: found '1046323,2005-12-19'"),
        ("1:\nx5,3,2005-09-06\n", "line 2: found 'x5,3"),
        ("1:\n,3,2005-09-06\n", "line 2: found ',3"),
        ("1:\n99999999999,3,2005-09-06\n", "line 2: found '99999999999"),
        ("one:\n5,3,2005-09-06\n", "line 1: found 'one:'"),
        ("1:\n\n5;3;2005-09-06\n", "line 3: found '5;3;2005-09-06'"),
        ("5,3,2005-09-06\n", "line 1: there is a rating before any film"),
        ("\n", "has no ratings"),
        ("", "has no ratings"),
        ("1:\n5,3,2005-09-06\n2:\n5,3,2005-09-06\n1:\n6,3,2005-09-06\n", "Film 1 comes twice"),
        ("1:\n5,3,2005-09-06\n6,3,2005-09-06\n5,4,2005-09-06\n", "User 5 rates film 1 twice"),
    ],
)
@pytest.mark.parametrize("block", [8, 1 << 25])
def test_bad_lines_of_the_prize_are_named(tmp_path, monkeypatch, content, message, block):
    monkeypatch.setattr(netflix_prize, "_BLOCK", block)
    path = tmp_path / "combined_data_1.txt"
    path.write_text(content)
    with pytest.raises(InvalidDataError, match=message):
        read_netflix_prize(path)


@pytest.mark.parametrize("kind", ["u1", "i1", ">i2", ">i4", ">f4", ">f8"])
@pytest.mark.parametrize("shape", [(5,), (3, 2), (2, 3, 4), (0, 7)])
def test_idx_arrays_come_back(tmp_path, kind, shape):
    code = {"u1": 8, "i1": 9, ">i2": 11, ">i4": 12, ">f4": 13, ">f8": 14}[kind]
    values = (np.arange(np.prod(shape)) * 7 - 5 * (kind != "u1")).reshape(shape).astype(kind)
    content = bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + values.tobytes()
    (tmp_path / "array").write_bytes(content)
    (tmp_path / "array.gz").write_bytes(gzip.compress(content))
    for name in ("array", "array.gz"):
        found = read_idx(tmp_path / name)
        assert found.dtype == values.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, values)


def write_idx(path, values):
    shape = values.shape
    path.write_bytes(
        bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + values.astype("u1").tobytes()
    )


def test_digits_and_labels_are_put_together(tmp_path):
    pictures, labels = np.arange(24).reshape(3, 2, 4), np.array([9, 0, 9])
    write_idx(tmp_path / "images", pictures)
    write_idx(tmp_path / "labels", labels)
    data = read_mnist(tmp_path / "images", tmp_path / "labels")
    np.testing.assert_array_equal(data.values, pictures.reshape(3, 8))
    np.testing.assert_array_equal(data.label_names[data.labels], ["9", "0", "9"])
    assert data.image_shape == (2, 4)
    with pytest.raises(InvalidDataError, match=r"labels has 1 dimensions, but images have 3"):
        read_mnist(tmp_path / "labels", tmp_path / "labels")
    write_idx(tmp_path / "labels", labels[:2])
    with pytest.raises(InvalidDataError, match=r"has 3 images, but .* has 2 labels"):
        read_mnist(tmp_path / "images", tmp_path / "labels")


def test_damaged_idx_files_are_refused(tmp_path):
    path = tmp_path / "array"
    write_idx(path, np.arange(24).reshape(3, 2, 4))
    whole = path.read_bytes()
    for content, message in (
        (whole[:-1], "has 39 bytes, but its header announces 3 x 2 x 4 numbers of 1 bytes, which makes 40"),
        (whole + b"\0", "has 41 bytes"),
        (whole[:10], "ends at byte 10, inside its header of 16 bytes"),
        (b"\x89PNG....", "begins with 89 50 4e 47, but an IDX file begins with 00 00"),
        (gzip.compress(whole), r"begins with 1f 8b .* name that ends in \.gz"),
        (b"", "begins with nothing"),
        (bytes([0, 0, 8, 70]) + struct.pack(">70I", *[1] * 70) + b"\1", "announces 1 x 1 .* which no array can hold"),
        (bytes([0, 0, 8, 4]) + struct.pack(">4I", 0, *[2**32 - 1] * 3), "announces 0 x 4,294,967,295 x .* no array"),
    ):
        path.write_bytes(content)
        with pytest.raises(InvalidDataError, match=message):
            read_idx(path)
    squeezed = tmp_path / "array.gz"
    for content in (whole, gzip.compress(whole)[:-12]):
        squeezed.write_bytes(content)
        with pytest.raises(InvalidDataError, match="is no gzip file, or a truncated one"):
            read_idx(squeezed)


RATINGS = [(196, 242, 3.0, 881250949), (22, 377, 1.0, 878887116), (196, 377, 4.0, 881171488)]


def movielens_text(form, ratings=RATINGS):
    if form == "ratings.csv":
        return "userId,movieId,rating,timestamp\n" + "".join(f"{u},{i},{r},{t}\n" for u, i, r, t in ratings)
    mark = "::" if form == "ratings.dat" else "\t"
    return "".join(mark.join((str(u), str(i), f"{r:g}", str(t))) + "\n" for u, i, r, t in ratings)


@pytest.mark.parametrize("form", ["u.data", "ratings.dat", "ratings.csv"])
def test_the_three_forms_of_movielens(tmp_path, form):
    ratings = [*RATINGS, (7, 242, 2.5, 881171500)]
    path = tmp_path / form
    path.write_text(movielens_text(form, ratings))
    for place in (path, tmp_path):
        data = read_movielens(place)
        np.testing.assert_array_equal(data.user_ids, [7, 22, 196])
        np.testing.assert_array_equal(data.item_ids, [242, 377])
        np.testing.assert_array_equal(data.ratings.toarray(), [[2.5, 0], [0, 1], [3, 4]])
        np.testing.assert_array_equal(data.timestamps, [rating[3] for rating in ratings])
    path.write_bytes(movielens_text(form, ratings).replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(read_movielens(path).ratings.toarray(), data.ratings.toarray())


@pytest.mark.parametrize("form", ["u.data", "ratings.dat", "ratings.csv"])
def test_bad_lines_of_movielens_are_named(tmp_path, form):
    mark = {"u.data": "\t", "ratings.dat": "::", "ratings.csv": ","}[form]
    good, path = movielens_text(form), tmp_path / form
    line = good.count("\n") + 1
    for fields in (
        ["5", "6"],
        ["5", "6", "3"],
        ["5", "6", "3", "8", "9"],
        ["5", "six", "3", "8"],
        ["5", "6", "nan", "8"],
        ["5.5", "6", "3", "8"],
        ["5", "6", "", "8"],
        ["-5", "6", "3", "8"],
        ["5", "-6", "3", "8"],
    ):
        path.write_text(good + mark.join(fields) + "\n" + good.splitlines()[-1])
        with pytest.raises(InvalidDataError, match=rf"line {line}: found '.*', but user, film, rating and time"):
            read_movielens(path)
    path.write_text(good + good.splitlines()[-1] + "\n")
    with pytest.raises(InvalidDataError, match="user 196 rates film 377 twice"):
        read_movielens(path)


@pytest.mark.parametrize("form", ["u.data", "ratings.dat", "ratings.csv"])
@pytest.mark.parametrize("last", [881171500, 1012345678])  # in the number of digits of the others, or in one more
def test_movielens_files_that_end_within_a_time_are_refused(tmp_path, form, last):
    ratings = [*RATINGS, (9, 377, 5.0, 1012345679), (7, 242, 2.5, last)]
    whole = movielens_text(form, ratings)
    path, squeezed = tmp_path / form, tmp_path / f"{form}.gz"
    for cut in range(2, len(str(last)) + 1):
        path.write_text(whole[:-cut])
        squeezed.write_bytes(gzip.compress(whole[:-cut].encode()))
        line = whole.count("\n")
        for place in (path, squeezed):
            with pytest.raises(InvalidDataError, match=rf"line {line}: the file ends with .*; it is truncated"):
                read_movielens(place)
    path.write_text(whole[:-1])
    assert read_movielens(path).timestamps[-1] == last
    path.write_text(whole[:-4] + "\n")
    assert read_movielens(path).timestamps[-1] == last // 1000


def test_what_is_no_movielens_file_is_refused(tmp_path):
    path = tmp_path / "ratings.csv"
    for content, message in (
        ("title,year\nHeat,1995\n", "line 1: found 'title,year'"),
        ("", "line 1: found ''"),
        ("userId,movieId,rating,timestamp\n", "has no ratings"),
        ("1\t2\t3\n", "line 1: found '1"),
    ):
        path.write_text(content)
        with pytest.raises(InvalidDataError, match=message):
            read_movielens(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingDataError, match=r"has no u\.data, ratings\.dat or ratings\.csv"):
        read_movielens(tmp_path / "empty")


def test_documents_come_with_their_topics(tmp_path):
    counts = np.array([[0, 2, 0], [1, 0, 0], [0, 0, 52.0]])
    path = tmp_path / "TDT2.mat"
    scipy.io.savemat(path, {"fea": sparse.csc_array(counts), "gnd": np.array([[3.0], [1.0], [3.0]])})
    data = read_tdt2(path)
    assert data.values.format == "csr"
    np.testing.assert_array_equal(data.values.toarray(), counts)
    np.testing.assert_array_equal(data.labels, [1, 0, 1])
    assert list(data.label_names) == ["topic 1", "topic 3"]
    scipy.io.savemat(path, {"fea": counts.astype(np.uint8), "gnd": np.array([3, 1, 3], dtype=np.uint8)})
    np.testing.assert_array_equal(read_tdt2(path).values.toarray(), counts)


def test_what_is_no_matrix_of_documents_is_refused(tmp_path):
    path = tmp_path / "TDT2.mat"
    for content, message in (
        ({"X": np.eye(2)}, "lacks 'fea'; it has X"),
        ({"fea": np.eye(2)}, "lacks 'gnd'; it has fea"),
        ({"fea": np.eye(2), "gnd": np.ones((3, 1))}, "gnd is for 3 documents, but fea has 2 rows"),
        ({"fea": np.eye(2), "gnd": np.array([1.0, 1.5])}, "gnd has values that are no whole numbers"),
        ({"fea": np.diag([1.0, np.nan]), "gnd": np.ones(2)}, "fea has entries that are NaN or infinite"),
        ({"fea": sparse.csc_array(np.diag([1.0, np.inf])), "gnd": np.ones(2)}, "fea has entries that are NaN or inf"),
        ({"fea": np.array(["a", "b"]), "gnd": np.ones(2)}, "fea is no table of numbers"),
    ):
        scipy.io.savemat(path, content)
        with pytest.raises(InvalidDataError, match=message):
            read_tdt2(path)
    whole = path.read_bytes()
    for content in (whole[:-20], b"something else entirely" * 20, b""):
        path.write_bytes(content)
        with pytest.raises(InvalidDataError, match="is no Matlab file, or a damaged one"):
            read_tdt2(path)
