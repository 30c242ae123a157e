/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers of OpenTelemetry's messages, as of release 1.11. */
#pragma once

enum { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY };

enum {
    DICTIONARY_MAPPING = 1,
    DICTIONARY_LOCATION,
    DICTIONARY_FUNCTION,
    DICTIONARY_LINK,
    DICTIONARY_STRING,
    DICTIONARY_ATTRIBUTE,
    DICTIONARY_STACK
};

enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES };

enum { RESOURCE_ATTRIBUTES = 1 };

enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES };

enum { SCOPE_NAME = 1, SCOPE_VERSION };

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLES,
    PROFILE_TIME,
    PROFILE_DURATION,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_ID,
    PROFILE_ATTRIBUTES = 11
};

enum { VALUE_TYPE = 1, VALUE_UNIT };

/* Until release 1.9 fields 2 to 4 of a sample had another order: values, attributes, link. */
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES, SAMPLE_LINK, SAMPLE_VALUES, SAMPLE_TIMES };

enum { STACK_LOCATIONS = 1 };

enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS, LOCATION_LINES, LOCATION_ATTRIBUTES };

enum { LINE_FUNCTION = 1, LINE_LINE };

enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

enum { MAPPING_FILE = 4 };

enum { LINK_TRACE = 1, LINK_SPAN };

/* KeyValueAndUnit, of the dictionary */
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE, ATTRIBUTE_UNIT };

/* KeyValue, of resources */
enum { PAIR_KEY = 1, PAIR_VALUE, PAIR_KEY_INDEX };

/* AnyValue; arrays and lists are not read */
enum { VALUE_STRING = 1, VALUE_BOOL, VALUE_INT, VALUE_DOUBLE, VALUE_STRING_INDEX = 8 };

/* Attributes of locations. */
#define FRAME_TYPE "profile.frame.type"
#define FRAME_KIND "jvmscope.frame.kind"
