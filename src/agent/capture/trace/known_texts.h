/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of objects of the JDK's own classes, made of their fields (shapes.c says which): what
 * the object's toString() returns, unless another form is named. A text of which a part is missing
 * ends there.
 */
#pragma once

#include "agent/capture/trace/values.h"

void known_put_optional(struct buf *b, const struct value *v); /* "[5]" or ".empty" */
/* "~2^4095" when there are more digits than were read. */
void known_put_big_integer(struct buf *b, const struct value *v);
void known_put_big_decimal(struct buf *b, const struct value *v);
void known_put_uuid(struct buf *b, const struct value *v);
void known_put_instant(struct buf *b, const struct value *v);
void known_put_duration(struct buf *b, const struct value *v);
void known_put_period(struct buf *b, const struct value *v);
void known_put_date(struct buf *b, const struct value *v); /* with or without a day */
void known_put_month_day(struct buf *b, const struct value *v);
void known_put_time(struct buf *b, const struct value *v);
void known_put_date_time(struct buf *b, const struct value *v);
void known_put_zoned(struct buf *b, const struct value *v);
void known_put_joined(struct buf *b, const struct value *v); /* the parts, one after the other */
void known_put_java_date(struct buf *b,
                         const struct value *v); /* the instant, which has no time zone */
void known_put_timestamp(struct buf *b,
                         const struct value *v); /* likewise, of java.sql.Timestamp */
/* Appends the instant, or "not computed" while there are only the fields that were set. */
void known_put_calendar(struct buf *b, const struct value *v);
void known_put_path(struct buf *b, const struct value *v);
void known_put_base_locale(struct buf *b, const struct value *v); /* without extensions */
void known_put_locale(struct buf *b, const struct value *v);
void known_put_inet4(struct buf *b, const struct value *v);
void known_put_inet6(struct buf *b, const struct value *v);
void known_put_inet6_number(struct buf *b, const struct value *v); /* without a name */
void known_put_socket_address(struct buf *b, const struct value *v);
void known_put_uri(struct buf *b, const struct value *v);
void known_put_url(struct buf *b, const struct value *v);
void known_put_member(struct buf *b, const struct value *v);      /* "pkg.Class.name" */
void known_put_constructor(struct buf *b, const struct value *v); /* "pkg.Class.<init>" */
void known_put_frame(struct buf *b, const struct value *v);       /* "pkg.Class.method:12" */
void known_put_parameter(struct buf *b, const struct value *v);   /* "arg0 of pkg.Class.method" */
void known_put_buffer(struct buf *b, const struct value *v);      /* "pos=0 lim=8 cap=8" */
/* Appends the result, the exception, or "not completed"; for a FutureTask, "cancelled" too. */
void known_put_future(struct buf *b, const struct value *v);
void known_put_task(struct buf *b, const struct value *v);
